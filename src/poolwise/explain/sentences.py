"""A wait as sentences: the answer in one sentence, and a phrase per rule."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from poolwise.explain.explanation import Episode, Explanation
from poolwise.explain.memory import MemoryStretch
from poolwise.model import Machine, Outcome
from poolwise.model.reason import Rule
from poolwise.units import format_memory, format_time, to_seconds


def answer_sentence(found: Explanation) -> str:
    """Return how long a job waited, the main cause, its share of the wait, and the blocking job."""
    job, wait = f"Job {found.job.id}", duration(found.wait)
    if found.rejected:
        return f"{job} can never run: {found.rejected}."
    totals = found.totals()
    if not totals or not any(totals.values()):
        started = "did not wait: it started as soon as it was submitted" if found.placement is not None else "never started"
        return f"{job} {started}." if found.wait == 0 or found.placement is None else f"{job} waited {wait} for its first pass."
    (rule, resource), ns = next(iter(totals.items()))
    part = "all of it" if ns == found.wait else f"{duration(ns)} of it ({_percent(ns, found.wait)} %)"
    begun = f"waited {wait}" if found.placement is not None else f"has not started in {wait}"
    return f"{job} {begun}, {part} {held_by(rule, resource)}{_longest(found, rule, resource)}."


def _longest(found: Explanation, rule: Rule, resource: str) -> str:
    """Return the need, the free amount and the blocking job in the longest episode of a rule."""
    episodes = [e for e in found.episodes if (e.reason.rule, e.reason.resource) == (rule, resource)]
    longest = max(episodes, key=lambda episode: episode.end - episode.start)
    blocker = longest.reason.blocker
    said = "" if blocker is None else f", longest because of job {int(found.job.table.id[blocker])}"
    return f"{_short(longest, found.machine)}{said}"


def _short(episode: Episode, machine: Machine) -> str:
    reason = episode.reason
    if not reason.resource or not reason.needed:
        return ""
    needed, most = (machine.amount_text(reason.resource, amount) for amount in (reason.needed, episode.free[1]))
    return f" (it needed {needed}, and {f'at most {most} were' if episode.free[1] else 'nothing was'} free)"


def _percent(part: int, whole: int) -> str:
    """Return a percentage that reads 100 or 0 only if exact."""
    return f"{min(99.0, max(1.0, round(100 * part / whole))):.0f}"


def held_by(rule: Rule, resource: str) -> str:
    """Return the phrase for a rule."""
    return {
        Rule.SHORT: f"short of {resource or 'resources'}",
        Rule.ORDER: "behind a head of the queue that does not fit",
        Rule.RESERVATION: f"blocked by a reservation{f' ({resource})' if resource else ''}",
        Rule.LIMIT: f"at a limit of its QOS{f' ({resource})' if resource else ''}",
        Rule.WARM_UP: "for the end of the warm-up",
        Rule.POSTPONED: "postponed for a better place or time",
        Rule.ROUND: "waiting for the next round",
        Rule.ASIDE: "for something that the scheduler does not model",
        Rule.UNSAID: "for reasons that the scheduler does not give",
    }[rule]


def duration(ns: int) -> str:
    """Return a duration in ns as text."""
    return format_time(to_seconds(ns))


def memory_sentence(stretches: Sequence[MemoryStretch]) -> str:
    """Return how much pool memory a job held, how often that changed, what it used, and where it ran short."""
    pooled, used = [one.pooled for one in stretches], [one.used for one in stretches if one.used is not None]
    changes = sum(one.run == two.run and one.pooled != two.pooled for one, two in pairwise(stretches))
    often = f", changed {changes:,} {'time' if changes == 1 else 'times'}" if changes else ""
    said = [f"held {_memory_span(pooled)} of pools{often}"]
    said += [f"used {_memory_span(used)} altogether"] if used else []
    still = sum(one.end - one.begin for one in stretches if one.stood_still)
    said += [f"stalled for {duration(still)} for lack of memory"] if still else []
    lost = sum(one.end - one.begin for one in stretches if one.outcome is Outcome.OUT_OF_MEMORY)
    said += [f"was terminated for lack of memory, which lost {duration(lost)} of running"] if lost else []
    return f"It {', '.join(said[:-1])} and {said[-1]}." if len(said) > 1 else f"It {said[0]}."


def _memory_span(amounts: Sequence[int]) -> str:
    least, most = format_memory(min(amounts)), format_memory(max(amounts))
    return least if least == most else f"{least} to {most}"
