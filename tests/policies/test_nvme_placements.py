"""NVMe placement policies: examples by hand, options, and rejected configurations."""

from contextlib import nullcontext

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Changes, JobTable, Queue, Refusal, Snapshot
from poolwise.model.run_table import RunTable
from poolwise.performance.bandwidth_sharing import BandwidthSharing
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.order.priorities import EDF, FCFS
from poolwise.policies.placement.nvme.composition_request import CompositionRequest
from poolwise.policies.placement.nvme.compositions import Compositions
from poolwise.policies.placement.nvme.policies import (
    NvmeDisaggregationAware,
    NvmeFirstFit,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
    rule,
)
from poolwise.quantities import SECOND
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.list import ListScheduler
from tests.helpers.nvme_examples import SHARING, machine, workload


def empty(what, jobs, now=0):
    return Snapshot(now, what, jobs.table, what.capacity, what.capacity, RunTable(what.capacity.size), SHARING)


def placed(policy, snapshot, job=0):
    """Return the (node, devices) that a policy chooses."""
    placed_on = policy.place(snapshot.table.job(job), snapshot)
    assert not isinstance(placed_on, Refusal), placed_on
    nodes = len([name for name in snapshot.machine.owners if name.startswith("node")])
    owners = placed_on.owners()
    return owners[0], tuple(owner - nodes for owner in owners[1:])


def started(policy, snapshot, *jobs):
    """Return the state after jobs have started where the policy places them."""
    for job in jobs:
        snapshot = snapshot.with_started(job, policy.place(snapshot.table.job(job), snapshot))
    return snapshot


def test_pooling_lets_the_third_job_of_figure_1_start_at_once():
    """J1 fills node 0, J2 half of node 1, J3 needs one core and an NVMe device."""
    jobs = workload([(0, "compute"), (1, "compute"), (2, "small")])
    jobs.requests["cores"].setflags(write=True)
    jobs.requests["cores"][:] = [10, 5, 1]

    def start_of_third(home):
        what = machine(nodes=(10, 10), devices=((2000, 600),), homes=[home])
        return simulate(jobs, what, CompositionScheduler(FCFS(), NvmeFirstFit())).schedule.job_start[2] / SECOND

    assert start_of_third(0) == 900  # attached to node 0: J1 has to end first
    assert start_of_third(-1) == 2


@pytest.mark.parametrize("kind", [CompositionScheduler, ListScheduler])
def test_requests_that_compositions_do_not_allocate_are_rejected_before_the_run(kind):
    scheduler, what, ones = kind(FCFS(), placement=NvmeMinimizeFragmentation()), machine(), np.ones(2, dtype=np.int64)
    for name, asks in (("storage", False), ("gpu", True)):
        jobs = JobTable(ones, ones - 1, ones * SECOND, ones, {"cores": ones, name: np.array([0, 2])}, {})
        with (
            pytest.raises(InputError, match="requests gpu, which composition placements do not allocate")
            if asks
            else nullcontext()
        ):
            scheduler.check(what, jobs)


def test_first_fit_never_takes_a_device_in_use_or_several_devices():
    what = machine(devices=((1000, 600), (2000, 600), (2000, 600)))
    snapshot = empty(what, workload([(0, "smufin")] * 3))
    policy = NvmeFirstFit()
    assert placed(policy, snapshot) == (0, (1,))
    assert placed(policy, started(policy, snapshot, 0)) == (0, (2,))
    assert isinstance(policy.place(snapshot.table.job(2), started(policy, snapshot, 0, 1)), Refusal)


def test_first_fit_with_sharing_respects_base_demands():
    what = machine(devices=((2000, 600),))
    snapshot = empty(what, workload([(0, "small")] * 7))
    policy = NvmeFirstFit(share=True)
    state = started(policy, snapshot, 0, 1, 2, 3, 4, 5)  # 6 x 300 of 2000 MB/s, 6 x 100 of 600 MiB
    assert isinstance(policy.place(snapshot.table.job(6), state), Refusal)
    assert int(state.free[2, 2]) == 0


def test_first_fit_takes_the_first_node_with_cores_and_a_free_device_inside():
    what = machine(nodes=(5, 25, 25), devices=((2000, 600),) * 3, homes=(0, 2, 2))
    assert placed(NvmeFirstFit(), empty(what, workload([(0, "smufin")]))) == (2, (1,))


@pytest.mark.parametrize(
    ("kind", "devices"), [("smufin", (0, 1)), ("fio", (0, 1, 2)), ("capacity", (0,)), ("small", (0,)), ("compute", ())]
)
def test_maximize_composes_while_the_time_alone_decreases(kind, devices):
    assert placed(NvmeMaximizeComposition(), empty(machine(), workload([(0, kind)]))) == (0, devices)


def test_late_and_lost_workloads_get_the_fewest_devices():
    late = empty(machine(), workload([(0, "smufin")], deadlines=[10]), now=10 * SECOND)
    lost = empty(machine(), workload([(0, "smufin")], deadlines=[1400]))  # two devices take 1455.48 s
    saved = empty(machine(), workload([(0, "smufin")], deadlines=[1460]))
    assert placed(NvmeMaximizeComposition(), late)[1] == (0,)
    assert placed(NvmeMaximizeComposition(), lost)[1] == (0,)
    assert placed(NvmeMaximizeComposition(), saved)[1] == (0, 1)


def test_smallest_composition_that_meets_the_deadline_is_an_option():
    policy = NvmeMaximizeComposition(smallest_k_meeting_deadline=True)
    assert placed(policy, empty(machine(), workload([(0, "fio")], deadlines=[900])))[1] == (0,)
    assert placed(policy, empty(machine(), workload([(0, "fio")], deadlines=[899])))[1] == (0, 1)


def test_maximize_joins_the_composition_that_lives_longest():
    what = machine(nodes=(25, 25), devices=((2000, 600),) * 4)
    jobs = workload([(0, "smufin"), (0, "smufin"), (0, "smufin")], deadlines=[9000, 9000, 9000])
    policy, first = NvmeMaximizeComposition(), NvmeFirstFit()
    begun = empty(what, jobs)
    begun = begun.with_started(0, first.place(jobs.job(0), begun), end=1000 * SECOND)
    begun = begun.with_started(1, first.place(jobs.job(1), begun), end=1200 * SECOND)
    # imagined runs are predicted again, so both live equally long: the tie goes to the lowest device
    assert placed(policy, begun, 2) == (0, (0,))


def test_no_sharing_where_a_resident_would_miss_its_deadline():
    what, policy = machine(devices=((2000, 600),)), NvmeMaximizeComposition()
    jobs = workload([(0, "smufin"), (0, "smufin")], deadlines=[1601, 9000])
    assert isinstance(policy.place(jobs.job(1), started(policy, empty(what, jobs), 0)), Refusal)  # two take 1601.25 s
    jobs = workload([(0, "smufin"), (0, "smufin")], deadlines=[1602, 9000])
    assert placed(policy, started(policy, empty(what, jobs), 0), 1) == (0, (0,))
    jobs = workload([(0, "smufin"), (0, "smufin")], deadlines=[1000, 9000])  # lost already: nothing to protect
    assert placed(policy, started(policy, empty(what, jobs), 0), 1) == (0, (0,))


def test_no_sharing_where_the_job_itself_would_miss_its_deadline():
    what, policy = machine(devices=((2000, 600),) * 2), NvmeMinimizeFragmentation()
    jobs = workload([(0, "smufin"), (0, "smufin")], deadlines=[9000, 1500])
    assert placed(policy, started(policy, empty(what, jobs), 0), 1)[1] == (1,)


def test_max_extension_prefers_a_new_composition():
    what = machine(devices=((2000, 600),) * 2)
    jobs = workload([(0, "smufin"), (0, "smufin")], deadlines=[99999, 99999])
    state = started(NvmeFirstFit(), empty(what, jobs), 0)
    assert placed(NvmeMaximizeComposition(), state, 1)[1] == (0,)  # 1601.25 s with a resident that has 1489.15 s left
    assert placed(NvmeMaximizeComposition(max_extension=0.1), state, 1)[1] == (0,)
    assert placed(NvmeMaximizeComposition(max_extension=0.05), state, 1)[1] == (1,)


def test_modeled_kinds_share_only_with_their_own_kind_and_with_partners():
    what, policy = machine(devices=((2000, 600),)), NvmeMaximizeComposition()
    jobs = workload([(0, "fio"), (0, "smufin"), (0, "small")], deadlines=[99999] * 3)
    state = started(policy, empty(what, jobs), 0)
    assert isinstance(policy.place(jobs.job(1), state), Refusal)
    assert isinstance(policy.place(jobs.job(2), state), Refusal)
    mixed = type(SHARING)(SHARING.tables, {"fio": ("smufin",), "smufin": ("fio",)})
    state = started(policy, Snapshot(0, what, jobs.table, what.capacity, what.capacity, RunTable(what.capacity.size), mixed), 0)
    assert placed(policy, state, 1) == (0, (0,))


def test_alpha_prefers_the_fuller_device_and_the_tighter_node():
    key = NvmeMinimizeFragmentation()
    what = machine(nodes=(6, 25), devices=((2000, 600),) * 2)
    jobs = workload([(0, "small")] * 3, deadlines=[99999] * 3)
    first = NvmeFirstFit()
    state = started(first, empty(what, jobs), 0)  # node 0: 3 of 6 cores left
    assert placed(key, state, 1) == (0, (0,))
    # alpha = (1 - (300/1700 + 100/500) / 2) / (3/3)
    view = Compositions(state)
    need = CompositionRequest.of(1, state, view.sharing)
    (candidate,) = view.candidates(need)
    assert key._alpha(candidate, need) == (1 - (300 / 1700 + 100 / 500) / 2) / (3 / 3)
    assert NvmeMinimizeFragmentation(alpha_as_printed=True)._alpha(candidate, need) == 1 - (300 / 1700 + 100 / 500)


def test_minimize_starts_on_the_emptiest_node_with_the_fewest_devices():
    what = machine(nodes=(20, 25), devices=((1000, 300),) * 4)
    jobs = workload([(0, "compute"), (0, "smufin")])
    state = started(NvmeFirstFit(), empty(what, jobs), 0)
    assert placed(NvmeMinimizeFragmentation(), state, 1) == (1, (0, 1))


@pytest.mark.parametrize(
    ("bandwidth", "capacity", "maximize"),
    [(0.5, 0.5, True), (0.51, 0.5, False), (0.5, 0.51, False), (0.7, 0.7, True), (0.69, 0.6, False), (1.4, 0.71, False)],
)
def test_equation_4(bandwidth, capacity, maximize):
    assert (rule(bandwidth, capacity) == "maximize_composition") is maximize


def test_different_devices_are_composed_with_the_least_surplus():
    what = machine(devices=((3000, 600), (1000, 600), (2000, 600), (1000, 100)))
    jobs = workload([(0, "smufin")], deadlines=[10])
    assert placed(NvmeMinimizeFragmentation(), empty(what, jobs)) == (0, (2,))
    what = machine(devices=((1500, 600), (1000, 600), (1000, 100)))
    assert placed(NvmeMinimizeFragmentation(), empty(what, jobs)) == (0, (1, 2))


def test_pools_are_not_mixed_and_the_lowest_serves_first():
    what = machine(devices=((1000, 600), (1000, 600), (1000, 600), (1000, 600)), racks=(0, 1, 1, 0))
    jobs = workload([(0, "smufin")] * 3, deadlines=[10] * 3)
    policy = NvmeMinimizeFragmentation()
    state = empty(what, jobs)
    assert placed(policy, state)[1] == (0, 3)
    assert placed(policy, started(policy, state, 0), 1)[1] == (1, 2)


def test_fabric_limits_the_attached_devices():
    what = machine(nodes=(25,) * 3, devices=((2000, 600),) * 4, fabric=5000)
    jobs = workload([(0, "capacity")] * 3)
    policy = NvmeMaximizeComposition()
    assert isinstance(policy.place(jobs.job(2), started(policy, empty(what, jobs), 0, 1)), Refusal)
    assert placed(policy, empty(what, workload([(0, "fio")])))[1] == (0, 1)  # three would be 6000 MB/s


def test_impossible_job_is_rejected_with_the_reason():
    what = machine(devices=((1000, 600),))
    jobs = workload([(0, "smufin"), (1, "small"), (2, "compute")])
    for scheduler in (CompositionScheduler(), ListScheduler(EDF(), Skip(), NvmeDisaggregationAware())):
        schedule = simulate(jobs, what, scheduler, model=SHARING).schedule
        assert list(schedule.rejected) == [0]
        assert "cannot fit on the empty machine: not enough" in schedule.rejected[0]
        assert schedule.done.tolist() == [False, True, True]


def test_model_without_tables_is_rejected():
    state = empty(machine(), workload([(0, "smufin")]))
    with pytest.raises(InputError, match="nvme_sharing"):
        NvmeFirstFit().place(
            state.table.job(0),
            Snapshot(0, state.machine, state.table, state.capacity, state.free, RunTable(1), BandwidthSharing()),
        )
    with pytest.raises(InputError, match="queue"):
        NvmeDisaggregationAware(count_waiting=True).place(state.table.job(0), state)
    with pytest.raises(InputError, match="deadline"):
        jobs = workload([(0, "smufin")])
        bare = type(jobs)(jobs.id, jobs.submit, jobs.duration, jobs.requested, jobs.tasks)
        EDF().priority(Queue(bare.table), state)


def test_skip_does_not_let_a_job_that_does_not_fit_block_others():
    what = machine(nodes=(25,), devices=())
    jobs = workload([(0, "compute"), (1, "compute"), (2, "small")])
    jobs.requests["bandwidth"].setflags(write=True)
    jobs.requests["storage"].setflags(write=True)
    jobs.requests["bandwidth"][:] = jobs.requests["storage"][:] = 0
    first = NvmeFirstFit()
    skipping = simulate(jobs, what, ListScheduler(EDF(), Skip(), first)).schedule
    blocking = simulate(jobs, what, ListScheduler(FCFS(), NoBackfill(), first)).schedule
    assert (skipping.job_start / SECOND).tolist() == [0, 900, 2]
    assert (blocking.job_start / SECOND).tolist() == [0, 900, 900]


def test_edf_ranks_the_earliest_deadline_first():
    jobs = workload([(0, "small"), (0, "small"), (0, "small")], deadlines=[30, 10, 20])
    queue = Queue(jobs.table)
    for job in range(3):
        queue.add(job)
    priority = EDF().priority(queue, empty(machine(), jobs))
    assert np.argsort(-priority).tolist() == [1, 2, 0]


def test_equal_compositions_are_one_candidate_regardless_of_their_number():
    """Lookup goes through groups of equal compositions, whose number does not grow with the machine."""
    for count in (4, 64):
        what = machine(nodes=(25,) * count, devices=((2000, 600),) * count)
        jobs = workload([(0, "smufin")] * (count + 1), deadlines=[1500] * count + [9000])
        dispatcher = CompositionScheduler(EDF(), NvmeMinimizeFragmentation()).open(what, 0)
        queue = Queue(jobs.table)
        for job in range(count):
            queue.add(job)
        dispatcher.schedule(queue, empty(what, jobs), Changes(arrived=tuple(range(count))))
        view = dispatcher._view
        candidates = list(view.candidates(CompositionRequest.of(count, view.snapshot, view.sharing)))
        assert sum(len(view._groups[c.key.kinds][c.key].by_device) for c in candidates) == count
        assert len(candidates) == 1
