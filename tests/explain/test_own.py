"""User-defined schedulers and backfills: their own reasons are used, or the explanation states that they give none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from poolwise.explain import Reason, WaitCause, explain_wait
from poolwise.interfaces import Dispatcher, Scheduler, SchedulingPass
from poolwise.model import Changes, Decisions, Machine, Queue, Refusal, Snapshot, Start, Wait, Workload
from poolwise.policies.backfill.skip import Skip
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListDispatcher, ListScheduler


def ones(submit: list[int]) -> Workload:
    """Return jobs of one node for ten seconds."""
    times, unit = np.array(submit) * SECOND, np.ones(len(submit), dtype=np.int64)
    return Workload.of(times, unit * 10 * SECOND, requests={"nodes": unit})


class Slow(Scheduler):
    """Starts one job per pass, and names the rule."""

    def __init__(self, says: bool) -> None:
        self.says = says

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        return SlowDispatcher(self.says)


class SlowDispatcher(Dispatcher):
    def __init__(self, says: bool) -> None:
        self.says = says

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        inner = ListScheduler().open(snapshot.machine, 0).schedule(queue, snapshot, changes)
        waits = [Wait(job, Refusal("one at a time")) for job in queue.jobs[1:].tolist()] if self.says else []
        return Decisions((*inner.entries[:1], *waits))


def test_user_scheduler_without_reasons_is_named() -> None:
    load = ones([0, 0, 1])
    for says, text in ((True, "one at a time"), (False, "Slow gives no reason")):
        explanation = explain_wait(load, Machine.flat(4), Slow(says), 2)
        assert [(why.cause, why.text) for _, why in explanation.passes] == [(WaitCause.UNREPORTED, text)]
        assert explanation.until == SECOND


class Telling(Slow):
    """Gives its own reasons."""

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        return TellingDispatcher(self.says)


class TellingDispatcher(SlowDispatcher):
    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        decisions = super().schedule(queue, snapshot, changes)
        (first,) = decisions.starts
        why = Reason(WaitCause.POSTPONED, "one a pass", blocker=first.job, ahead=len(queue) - 1)
        return replace(decisions, reasons=dict.fromkeys(changes.explain, why))


class Deaf(ListScheduler):
    """Starts one job per pass; its dispatcher drops the reasons of one that starts more."""

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        return DeafDispatcher(self)


class DeafDispatcher(ListDispatcher):
    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        return Decisions(super().schedule(queue, snapshot, changes).entries[:1])


class First(Skip):
    """Backfill that starts only the first job, chosen by one that starts more."""

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        return list(super().select(cycle))[:1]


class FirstAlone(First):
    """The same backfill with its own reason."""

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        for job in cycle.to_explain():
            cycle.record(job, WaitCause.ORDER, "one at a time")
        return super().select(cycle)


def test_reasons_of_a_user_scheduler_are_used() -> None:
    load = ones([0, 0, 1])
    explanation = explain_wait(load, Machine.flat(4), Telling(says=False), 2)
    assert [why for _, why in explanation.passes] == [Reason(WaitCause.POSTPONED, "one a pass", blocker=0, ahead=1)]
    assert explanation.to_dict()["episodes"][0]["blocker"] == 1


def test_reasons_follow_the_decisions_of_a_subclass() -> None:
    load = ones([0, 0, 0])
    reasons = [
        [(why.cause, why.text, why.ahead) for _, why in explain_wait(load, Machine.flat(4), how, 3).passes]
        for how in (Deaf(), ListScheduler(backfill=First()), ListScheduler(backfill=FirstAlone()))
    ]
    assert reasons == [
        [(WaitCause.UNREPORTED, "Deaf gives no reason", 0)] * 2,
        [(WaitCause.UNREPORTED, "it fits, and First gives no reason", ahead) for ahead in (1, 0)],
        [(WaitCause.ORDER, "one at a time", ahead) for ahead in (1, 0)],
    ]
