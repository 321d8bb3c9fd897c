"""Sentences that summarize a job's wait and its memory, and phrases for the causes that hold jobs back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from poolwise.explain.explanation import Episode, Explanation
from poolwise.explain.memory import MemoryStretch
from poolwise.explain.places import amount_with_name, and_list
from poolwise.model import Outcome
from poolwise.model.licenses import LICENSE
from poolwise.model.reason import Reason, WaitCause
from poolwise.quantities import format_memory, format_time, to_seconds


def answer_sentence(explanation: Explanation) -> str:
    """Return how long a job waited, what held it back longest and for which share of the wait, and the blocking job."""
    job, wait = f"Job {explanation.job.id}", duration(explanation.wait)
    if explanation.rejected:
        return f"{job} can never run: {explanation.rejected}."
    totals = explanation.totals()
    if not totals or not any(totals.values()):
        started = (
            "did not wait: it started as soon as it was submitted" if explanation.placement is not None else "never started"
        )
        return (
            f"{job} {started}."
            if explanation.wait == 0 or explanation.placement is None
            else f"{job} waited {wait} for its first pass."
        )
    (cause, resource), ns = next(iter(totals.items()))
    part = "all of it" if ns == explanation.wait else f"{duration(ns)} of it ({_percent(ns, explanation.wait)} %)"
    begun = f"waited {wait}" if explanation.placement is not None else f"has not started in {wait}"
    where = f" in partition {explanation.partition}" if explanation.partition and cause is WaitCause.SHORT else ""
    return f"{job} {begun}, {part} {held_by(cause, resource)}{where}{_longest(explanation, cause, resource)}."


def _longest(explanation: Explanation, cause: WaitCause, resource: str) -> str:
    """Return the needed and free amounts and the blocking job in the longest episode of a cause."""
    episodes = [e for e in explanation.episodes if (e.reason.cause, e.reason.resource) == (cause, resource)]
    longest = max(episodes, key=lambda episode: episode.end - episode.start)
    blocker = longest.reason.blocker
    because = "" if blocker is None else f", longest because of job {int(explanation.job.table.id[blocker])}"
    return f"{_shortage(longest, explanation)}{because}"


def holders_sentence(explanation: Explanation) -> str:
    """Name the running jobs that held most of the scarce resource when the longest episode of this cause began.

    The result is empty if no such jobs are known.
    """
    held = [episode for episode in explanation.episodes if episode.holders]
    if not held:
        return ""
    longest, table = max(held, key=lambda episode: episode.end - episode.start), explanation.job.table
    resource, submit = longest.reason.resource, explanation.job.submit
    texts = [
        f"job {int(table.id[holder.job])} ({amount_with_name(explanation.machine, resource or 'nodes', holder.amount)}, "
        f"expected to end {_after(holder.until - submit)})"
        for holder in longest.holders
    ]
    return f"When that began, {_after(longest.start - submit)}, {and_list(texts)} held the most."


def _after(ns: int) -> str:
    return "at the submission" if ns == 0 else f"after {duration(ns)}" if ns > 0 else f"{duration(-ns)} before the submission"


def _each(reason: Reason, explanation: Explanation) -> str:
    """Describe what must be free on each node: the needs of the blocking job if the reason states these, else of the job."""
    machine, job, name = explanation.machine, explanation.job, reason.resource
    if reason.blocker_needs and reason.blocker is not None:
        job = job.table.job(reason.blocker)
    amounts = {name: reason.needed} if name else {key: job.request(key) for key in job.table.requests if key != "nodes"}
    return and_list(amount_with_name(machine, key, amount) for key, amount in amounts.items() if amount)


def _shortage(episode: Episode, explanation: Explanation) -> str:
    reason, machine = episode.reason, explanation.machine
    subject = "it" if reason.blocker is None else needing(reason, explanation) or f"job {explanation.job.id}"
    if reason.nodes > 1:
        had = f"at most {episode.fitting[1]:,} had that much" if episode.fitting[1] else "none had that much"
        return f" ({subject} needed {reason.nodes:,} nodes with {_each(reason, explanation)} free each, and {had})"
    if reason.nodes == 1 and not reason.resource:
        return f" ({subject} needed a node with {_each(reason, explanation)} free, but there was none)"
    if reason.nodes == 1:
        most = machine.amount_text(reason.resource, episode.free[1])
        largest = f"at most {most} were" if episode.free[1] else "nothing was"
        return f" ({subject} needed a node with {_each(reason, explanation)} free, and {largest} free on one)"
    if not reason.resource or not reason.needed:
        return ""
    needed, free = (machine.amount_text(reason.resource, amount) for amount in (reason.needed, episode.free[1]))
    return f" ({subject} needed {needed}, and {f'at most {free} were' if episode.free[1] else 'nothing was'} free)"


def needing(reason: Reason, explanation: Explanation) -> str:
    """Return the blocker's name ("job 1094") if a reason states the blocker's need; "" if it states the job's own need."""
    if not reason.blocker_needs or reason.blocker is None:
        return ""
    return f"job {int(explanation.job.table.id[reason.blocker])}"


def _percent(part: int, whole: int) -> str:
    """Format a percentage, as 100 or 0 only if it is exactly that."""
    return f"{min(99.0, max(1.0, round(100 * part / whole))):.0f}"


def held_by(cause: WaitCause, resource: str) -> str:
    """Return a phrase that states what held a job back, to follow a duration."""
    if resource.startswith(LICENSE):
        return f"short of licenses '{resource.removeprefix(LICENSE)}'"
    return {
        WaitCause.SHORT: f"short of {resource or 'room'}",
        WaitCause.ORDER: "behind the head of the queue, which does not fit",
        WaitCause.RESERVATION: f"blocked by a reservation{f' of {resource}' if resource else ''}",
        WaitCause.LIMIT: f"at a QOS limit{f' ({resource})' if resource else ''}",
        WaitCause.WARM_UP: "until the end of the warm-up",
        WaitCause.POSTPONED: "for a better placement or time",
        WaitCause.ROUND: "for the next round",
        WaitCause.PREDECESSORS: "for other jobs to finish",
        WaitCause.ASIDE: "for a resource that the scheduler does not model",
        WaitCause.UNREPORTED: "for a reason that the scheduler does not report",
    }[cause]


def duration(ns: int) -> str:
    """Format ns as a duration with a unit."""
    return format_time(to_seconds(ns))


def memory_sentence(stretches: Sequence[MemoryStretch]) -> str:
    """Return how much pool memory a job held, how often that changed, its memory use, and the effects of memory shortages."""
    pooled = [stretch.pooled for stretch in stretches]
    used = [stretch.used for stretch in stretches if stretch.used is not None]
    changes = sum(a.run == b.run and a.pooled != b.pooled for a, b in pairwise(stretches))
    often = f", changed {changes:,} {'time' if changes == 1 else 'times'}" if changes else ""
    parts = [f"held {_memory_span(pooled)} of pool memory{often}"]
    parts += [f"used {_memory_span(used)} in total"] if used else []
    stalled = sum(stretch.end - stretch.begin for stretch in stretches if stretch.stood_still)
    parts += [f"was stalled for {duration(stalled)} by a memory shortage"] if stalled else []
    lost = sum(stretch.end - stretch.begin for stretch in stretches if stretch.outcome is Outcome.OUT_OF_MEMORY)
    parts += [f"was killed when memory ran out, which lost {duration(lost)} of run time"] if lost else []
    return f"It {', '.join(parts[:-1])} and {parts[-1]}." if len(parts) > 1 else f"It {parts[0]}."


def _memory_span(amounts: Sequence[int]) -> str:
    least, most = format_memory(min(amounts)), format_memory(max(amounts))
    return least if least == most else f"{least} to {most}"
