"""Properties of composition on small random machines and workloads, under every policy."""

import pickle
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.metrics.compositions import composition_faults
from poolwise.model import Kind, Start
from poolwise.performance.combined import Combined
from poolwise.performance.ideal import Ideal
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.order.priorities import EDF
from poolwise.policies.placement.nvme.policies import (
    NvmeDisaggregationAware,
    NvmeFirstFit,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
)
from poolwise.quantities import with_slowdown
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from tests.helpers.nvme_examples import KINDS, SHARING, machine, workload

PARTNERS = NvmeSharing(SHARING.tables, {"fio": ("smufin",), "smufin": ("fio",)})
FROZEN = NvmeSharing(SHARING.tables, fixed_at_start=True)

policies = st.sampled_from(
    [
        NvmeFirstFit(),
        NvmeFirstFit(share=True),
        NvmeMaximizeComposition(),
        NvmeMaximizeComposition(max_extension=0.2, late_shares=False),
        NvmeMaximizeComposition(smallest_k_meeting_deadline=True),
        NvmeMinimizeFragmentation(),
        NvmeMinimizeFragmentation(alpha_as_printed=True),
        NvmeDisaggregationAware(),
    ]
)


@st.composite
def machines(draw):
    nodes = draw(st.lists(st.sampled_from([15, 25, 40]), min_size=1, max_size=3))
    devices = draw(st.lists(st.sampled_from([(2000, 600), (2000, 600), (1000, 300), (3000, 900)]), min_size=1, max_size=6))
    homes = draw(st.lists(st.integers(-1, len(nodes) - 1), min_size=len(devices), max_size=len(devices)))
    racks = draw(st.lists(st.integers(0, 1), min_size=len(devices), max_size=len(devices)))
    return machine(nodes, devices, homes, racks, draw(st.sampled_from([None, 5000])))


@st.composite
def workloads(draw):
    jobs = draw(st.lists(st.tuples(st.integers(0, 3000), st.sampled_from(sorted(KINDS))), min_size=1, max_size=25))
    slack = draw(st.lists(st.sampled_from([0.5, 1.0, 1.02, 1.2, 2.0, 4.0]), min_size=len(jobs), max_size=len(jobs)))
    return workload(jobs, [s + f * KINDS[kind][0] for (s, kind), f in zip(jobs, slack, strict=True)])


class Monitored:
    """Scheduler that checks for each start that no resident run is made to miss its deadline."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    def open(self, what, seed):
        return MonitoredDispatcher(self.scheduler.open(what, seed))

    def check(self, what, jobs):
        self.scheduler.check(what, jobs)


class MonitoredDispatcher:
    def __init__(self, dispatcher):
        self.dispatcher = dispatcher

    def schedule(self, queue, snapshot, changes):
        decisions = self.dispatcher.schedule(queue, snapshot, changes)
        state = snapshot
        for decision in decisions:
            if isinstance(decision, Start):
                after = state.with_started(decision.job, decision.placement)
                check_residents(state, after, decision.placement)
                state = after
        return decisions


def check_residents(before, after, placement):
    deadline = before.table.attributes["deadline"]
    devices = [owner for owner in placement.owners() if before.machine.kind[owner] == Kind.DEVICE]
    for number in {n for device in devices for n in before.occupants(device)}:
        ends = []
        for snapshot in (before, after):
            slowdown = snapshot.estimate.slowdown(snapshot.run(number), snapshot)
            ends.append(snapshot.now + with_slowdown(snapshot.work_left(number), slowdown))
        due = int(deadline[before.run(number).job])
        assert not (ends[0] + 10 <= due < ends[1] - 10), f"run {number} is made to miss its deadline"


def columns(schedule):
    return [schedule.job, schedule.start, schedule.end, schedule.owner, schedule.resource, schedule.amount]


@settings(max_examples=80, deadline=None)
@given(machines(), workloads(), policies, st.sampled_from([SHARING, PARTNERS, FROZEN]))
def test_composition_rules_hold_and_the_index_decides_as_a_full_scan(what, jobs, policy, model):
    scheduler = CompositionScheduler(EDF(), policy)
    watched = Monitored(scheduler) if model is not FROZEN and not isinstance(policy, NvmeFirstFit) else scheduler
    schedule = simulate(jobs, what, watched, model=model).schedule
    assert composition_faults(schedule) == []
    assert not schedule.refused and not schedule.waiting
    assert (schedule.done | np.isin(np.arange(len(jobs)), list(schedule.rejected))).all()
    assert (schedule.job_start[schedule.done] >= jobs.submit[schedule.done]).all()
    fresh = simulate(jobs, what, ListScheduler(EDF(), Skip(), policy), model=model).schedule
    again = simulate(jobs, what, pickle.loads(pickle.dumps(scheduler)), model=model).schedule
    for other in (fresh, again):
        assert all(np.array_equal(a, b) for a, b in zip(columns(schedule), columns(other), strict=True))
        assert dict(schedule.rejected) == dict(other.rejected)
    if model is not FROZEN:
        check_progress(schedule, model)


def starts(scheduler, what, jobs):
    schedule = simulate(jobs, what, scheduler, model=SHARING).schedule
    return dict(zip(schedule.job.tolist(), (schedule.start / 1e9).tolist(), strict=True))


@pytest.mark.parametrize("scheduler", [CompositionScheduler(EDF(), NvmeMaximizeComposition()),
                                       ListScheduler(EDF(), Skip(), NvmeMaximizeComposition())])  # fmt: skip
class TestCachedRefusals:
    """A refusal is cached across passes only while it would be repeated."""

    def test_job_is_retried_once_its_resident_has_progressed_enough(self, scheduler):
        jobs = workload([(0, "smufin"), (0, "smufin"), (1, "capacity"), (17, "capacity")], [1600, 1632, 401, 417])
        # 1.25 s late with a second sharer, so safe once 1.25 / (1601.25 / 1489.15 - 1) = 16.6 s have passed
        assert starts(scheduler, machine([15], [(2000, 600)], [0], [0]), jobs)[1] == 17

    def test_rejected_job_does_not_trigger_a_retry(self, scheduler):
        jobs = workload([(0, "small"), (0, "small"), (350, "capacity")], [350, 350, 750])
        assert starts(scheduler, machine([15], [(1000, 300)], [0], [0]), jobs) == {0: 0, 1: 700}


def check_progress(schedule, model):
    """Check that the integral of the rate over each run equals its work, whatever else starts and ends."""
    machine, jobs = schedule.machine, schedule.workload
    devices = [
        frozenset(o for o, _, _ in schedule.placement_of(k) if machine.kind[o] == Kind.DEVICE) for k in range(schedule.n_run)
    ]
    for run, mine in enumerate(devices):
        table = model.table(str(jobs.attributes["kind"][schedule.job[run]]))
        start, end, base = int(schedule.start[run]), int(schedule.end[run]), int(jobs.duration[schedule.job[run]])
        if table is None or not mine:
            assert end - start == base
            continue
        others = [k for k in range(schedule.n_run) if k != run and devices[k] == mine]
        edges = sorted({start, end, *(int(t[k]) for k in others for t in (schedule.start, schedule.end) if start < t[k] < end)})
        work = 0.0
        for low, high in pairwise(edges):
            sharers = 1 + sum(1 for k in others if schedule.start[k] <= low and schedule.end[k] >= high)
            work += (high - low) * base / (table.time(len(mine), sharers) * 1e9)
        assert abs(work - base) <= 10 * len(edges)


@pytest.mark.parametrize(("woken", "started"), [(0.5, 900.5), (0.8, 0.8)])
def test_composition_accepts_another_sharer_once_it_can(woken, started):
    """Two SMUFIN on one device take 1601.25 s, 0.05 s beyond the resident's deadline; the excess is gone after 0.665 s.

    A wake-up before that is too early; the next one is the end of the workload that caused it.
    """
    jobs = workload([(0, "smufin"), (0.1, "smufin"), (woken, "compute")], deadlines=[1601.2, 9000, 9000])
    what = machine(nodes=(40,), devices=((2000, 600),))
    for scheduler in (
        CompositionScheduler(EDF(), NvmeMaximizeComposition()),
        ListScheduler(EDF(), Skip(), NvmeMaximizeComposition()),
    ):
        schedule = simulate(jobs, what, scheduler, model=SHARING).schedule
        assert schedule.job_start[1] / 1e9 == pytest.approx(started)
        assert schedule.job_end[0] <= jobs.attributes["deadline"][0]


@dataclass(frozen=True)
class DelegatedTables(PerformanceModel):
    """User-defined model that offers the tables of another model."""

    inner: NvmeSharing
    fixed_at_start: bool = False

    def table(self, kind):
        return self.inner.table(kind)

    def setup(self, run, snapshot):
        return self.inner.setup(run, snapshot)

    def slowdown(self, run, snapshot):
        return self.inner.slowdown(run, snapshot)

    def touches(self, placement, snapshot):
        return self.inner.touches(placement, snapshot)


class WithoutTables(PerformanceModel):
    """Model without tables."""

    def setup(self, run, snapshot):
        return 0

    def slowdown(self, run, snapshot):
        return 0.0

    def touches(self, placement, snapshot):
        return ()


@dataclass(frozen=True)
class NamedParts(WithoutTables):
    """User-defined model that names its parts."""

    parts: tuple[PerformanceModel, ...] = (Ideal(),)


class SlowerIdeal(Ideal):
    """Model derived from the ideal model, with another slowdown."""

    def slowdown(self, run, snapshot):
        return 1.0


def test_composition_accepts_any_model_with_tables():
    jobs = workload([(k * 40, ("smufin", "fio", "capacity")[k % 3]) for k in range(18)])
    on = machine(devices=((2000, 600),) * 3)
    scheduler = CompositionScheduler(EDF(), NvmeMaximizeComposition())
    shared = simulate(jobs, on, scheduler, model=PARTNERS).schedule
    for estimate in (DelegatedTables(PARTNERS), Combined((Ideal(), DelegatedTables(PARTNERS)))):
        assert simulate(jobs, on, scheduler, model=PARTNERS, estimate=estimate).schedule.start.tolist() == shared.start.tolist()
    for estimate in (NamedParts(()), Combined((Ideal(), Ideal())), Combined(())):
        base = simulate(jobs, on, scheduler, model=PARTNERS, estimate=estimate).schedule
        assert base.start.tolist() == simulate(jobs, on, scheduler, model=PARTNERS, estimate=Ideal()).schedule.start.tolist()
    blind = simulate(jobs, on, scheduler, model=PARTNERS, estimate=Ideal()).schedule
    assert blind.start.tolist() != shared.start.tolist()


def test_device_model_without_tables_is_rejected():
    for model in (WithoutTables(), SlowerIdeal(), Combined((Ideal(), WithoutTables()))):
        with pytest.raises(InputError, match=f"requires a performance model with sharing tables, not {type(model).__name__}"):
            simulate(workload([(0, "fio")]), machine(), CompositionScheduler(), model=model)
