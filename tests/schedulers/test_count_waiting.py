"""Disaggregation-aware placement that counts the demand of the queue: comparison with a full scan, and reasons for waits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from poolwise.engines import simulate
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Decisions, Refusal, Reject, Start, Wait
from poolwise.policies.order.priorities import EDF
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.policies import NvmeDisaggregationAware
from poolwise.quantities import NEVER
from poolwise.schedulers.composition import CompositionScheduler
from tests.helpers.nvme_examples import SHARING, machine, workload
from tests.schedulers.test_composition import columns, machines, workloads

POLICY = NvmeDisaggregationAware(count_waiting=True)


class FullScan(Scheduler, Dispatcher):
    """Scheduler that reads the whole machine for each job and sums up the waiting demand job by job."""

    def open(self, what, seed):
        return self

    def check(self, what, jobs):
        pass

    def schedule(self, queue, snapshot, changes):
        never = {job: chosen for job in queue.jobs.tolist() if isinstance(chosen := self.alone(job, snapshot), Refusal)}
        if never:
            return Decisions(
                tuple(Reject(job, f"cannot fit on the empty machine: {refusal.reason}") for job, refusal in never.items())
            )
        order = np.argsort(-EDF().priority(queue, snapshot), kind="stable")
        left, decisions = queue.jobs[order].tolist(), []
        for job in list(left):
            view = Compositions(snapshot)
            view.waiting = tuple(sum(int(snapshot.table.request(name)[k]) for k in left) for name in ("bandwidth", "storage"))
            chosen = POLICY.choose(view.need(job), view)
            if not isinstance(chosen, Refusal):
                decisions.append(Start(job, (0,), chosen))
                snapshot = snapshot.with_started(job, chosen)
                left.remove(job)
        return Decisions(tuple(decisions))

    def alone(self, job, snapshot):
        view = Compositions(snapshot.empty())
        need = replace(view.need(job), deadline=NEVER, late=False)
        view.waiting = need.bandwidth, need.storage
        return POLICY.choose(need, view)


@settings(max_examples=60, deadline=None)
@given(machines(), workloads())
def test_scheduler_decides_as_a_full_scan(what, jobs):
    fast, slow = (simulate(jobs, what, s, model=SHARING).schedule for s in (CompositionScheduler(EDF(), POLICY), FullScan()))
    assert all(np.array_equal(a, b) for a, b in zip(columns(fast), columns(slow), strict=True))
    assert dict(fast.rejected) == dict(slow.rejected)


def test_queue_demand_decides_between_the_two_policies():
    """Eight workloads request 0.6 of the bandwidth: if they count, fragmentation is minimized from the first one on."""
    what = machine(nodes=(200,), devices=((2000, 600),) * 12)
    crowd = workload([(0, "smufin")] * 8)
    starts = {}
    for name, policy in (("counts", POLICY), ("does not", NvmeDisaggregationAware())):
        schedule = simulate(crowd, what, CompositionScheduler(EDF(), policy), model=SHARING).schedule
        assert not schedule.rejected and schedule.done.all()
        starts[name] = columns(schedule)
    assert any(not np.array_equal(a, b) for a, b in zip(*starts.values(), strict=True))


class Explaining(Scheduler):
    """Scheduler that requests a reason for every job that a pass leaves waiting, as `poolwise explain` does."""

    def __init__(self):
        self.scheduler, self.reasons = CompositionScheduler(EDF(), POLICY), []

    def open(self, what, seed):
        return ExplainingDispatcher(self.scheduler.open(what, seed), self.reasons)

    def check(self, what, jobs):
        self.scheduler.check(what, jobs)


class ExplainingDispatcher(Dispatcher):
    def __init__(self, dispatcher, reasons):
        self.dispatcher, self.reasons = dispatcher, reasons

    def schedule(self, queue, snapshot, changes):
        decisions = self.dispatcher.schedule(queue, snapshot, replace(changes, explain=frozenset(queue.jobs.tolist())))
        if not decisions.rejected:
            decided = {d.job for d in decisions if isinstance(d, Start | Wait)}
            self.reasons += [decisions.reason(job, self.dispatcher) for job in queue.jobs.tolist() if job not in decided]
        return decisions


@settings(max_examples=30, deadline=None)
@given(machines(), workloads())
def test_reason_names_the_shortage_and_agrees_with_the_pass(what, jobs):
    scheduler = Explaining()
    simulate(jobs, what, scheduler, model=SHARING)
    assert all(reason.text for reason in scheduler.reasons)


def test_reasons_on_a_full_machine():
    scheduler = Explaining()
    simulate(workload([(0, "smufin")] * 3), machine(nodes=(15,), devices=((2000, 600),)), scheduler, model=SHARING)
    assert scheduler.reasons
    assert any("cores" in reason.text for reason in scheduler.reasons)


@pytest.mark.parametrize("counted", [True, False])
def test_single_workload_is_placed_equally_by_both_policies(counted):
    what, jobs = machine(nodes=(40,), devices=((2000, 600),) * 4), workload([(0, "smufin")])
    schedule = simulate(
        jobs, what, CompositionScheduler(EDF(), NvmeDisaggregationAware(count_waiting=counted)), model=SHARING
    ).schedule
    assert schedule.done.all()
