"""An explained wait in the form of all answers: the main reason, totals, and tables of episodes and memory."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.explain.explanation import Episode, Explanation
from poolwise.explain.places import placement_text
from poolwise.explain.sentences import answer_sentence, duration, held_by, holders_sentence, memory_sentence, needing
from poolwise.presentation.answer import Answer
from poolwise.presentation.table import Table
from poolwise.quantities import format_memory
from poolwise.version import __version__


def wait_answer(explanation: Explanation, name: str) -> Answer:
    """Return why a job of the named run waited, with every episode of the wait."""
    question = f"Why job {explanation.job.id} waited" if explanation.passes else f"Job {explanation.job.id} did not wait"
    totals = [f"{duration(ns)} {held_by(cause, resource)}." for (cause, resource), ns in explanation.totals().items()]
    headline, submitted = answer_sentence(explanation), duration(explanation.job.submit)
    return Answer(
        title=f"{question}: {name}",
        headline=headline,
        because=[
            f"{name}: job {explanation.job.id}, submitted {submitted} after the start of the trace.",
            *totals,
            *filter(None, [holders_sentence(explanation)]),
            _outcome(explanation),
            *([memory_sentence(explanation.memory)] if explanation.memory else []),
        ],
        tables=[
            *([_episodes(explanation)] if explanation.passes else []),
            *([_memory(explanation)] if explanation.memory else []),
        ],
        content={"run": name, "answer": headline, **explanation.to_dict()},
        provenance={"poolwise": __version__, "run": name, "job": str(explanation.job.id)},
    )


def _episodes(explanation: Explanation) -> Table:
    columns = ["after", "for", "passes", "ahead", "held back by", "needed", "free", "in the way"]
    note = "After: time since the submission. Ahead: jobs with higher priority."
    return Table("Episodes of the wait", columns, [[*_row(explanation, e)] for e in explanation.episodes], note, text=True)


def _row(explanation: Explanation, episode: Episode) -> Iterator[str]:
    reason, amount_text, submit = episode.reason, explanation.machine.amount_text, explanation.job.submit
    yield duration(episode.start - submit)
    yield duration(episode.end - episode.start)
    yield f"{episode.passes:,}"
    yield _range(*(f"{n:,}" for n in episode.ahead))
    yield reason.text
    each, whose = f"{reason.nodes:,} nodes with " if reason.nodes > 1 else "", needing(reason, explanation)
    needed = f"{each}{amount_text(reason.resource, reason.needed)}" if reason.resource else each.removesuffix(" with ")
    yield f"{needed} ({whose})" if needed and whose else needed
    if reason.nodes > 1:
        yield f"{_range(*(f'{n:,}' for n in episode.fitting))} {'node' if episode.fitting == (1, 1) else 'nodes'}"
    else:
        yield _range(*(amount_text(reason.resource, n) for n in episode.free)) if reason.resource else ""
    reserved = "" if episode.reserved is None else _range(*(duration(ns - submit) for ns in episode.reserved))
    blocker = "" if reason.blocker is None else f"job {explanation.job.table.id[reason.blocker]}"
    yield f"{blocker}, reserved after {reserved}" if blocker and reserved else blocker


def _memory(explanation: Explanation) -> Table:
    """Return the memory that the job held and used, one row per interval."""
    rows, stretches = list[list[str]](), explanation.memory
    for k, stretch in enumerate(stretches):
        used = "" if stretch.used is None else format_memory(stretch.used)
        amounts = [format_memory(stretch.local), format_memory(stretch.pooled), used]
        last = k + 1 == len(stretches) or stretches[k + 1].run != stretch.run
        remarks = ["stalled: not enough memory"] * stretch.stood_still + [f"then {stretch.outcome}"] * last
        times = duration(stretch.begin - explanation.job.submit), duration(stretch.end - stretch.begin)
        rows.append([*times, *amounts, ", ".join(remarks)])
    return Table("Memory of the job", ["after", "for", "in nodes", "in pools", "used", ""], rows, text=True)


def _outcome(explanation: Explanation) -> str:
    if explanation.placement is not None:
        return f"Started after {duration(explanation.wait)} on {placement_text(explanation.placement, explanation.machine)}."
    if explanation.rejected:
        return f"Rejected after {duration(explanation.wait)}: {explanation.rejected}."
    return f"Never started; the last pass was after {duration(explanation.wait)}."


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
