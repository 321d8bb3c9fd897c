"""A task dispatcher holds only caches: reopened at any pass it decides equally, in simulations and with faults."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise.conformance.cases import units
from poolwise.conformance.fake_cluster import Fault, calm_starts, survive
from poolwise.engines import simulate
from poolwise.interfaces import PerformanceModel
from poolwise.loop import Loop, LoopResult, run_loop
from poolwise.model import CommitResult, Decisions, JobWithdrawn, Kind, Machine, Outcome, Placement, Run, Snapshot, Start, Wait
from poolwise.model.run_table import RunTable
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.fetching import Fetching
from poolwise.performance.ideal import Ideal
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.performance.transfer import Transfer
from poolwise.platforms.simulated import Disturbance, Simulation
from poolwise.policies.placement.units.view import Units
from poolwise.quantities import UNKNOWN
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from tests.helpers.random_dispatch import POLICIES, policy_of, study
from tests.helpers.random_studies import difference
from tests.helpers.reopened import Reopened

named = pytest.mark.parametrize("entry", POLICIES, ids=[f"{name}-{kw}" for name, kw in POLICIES])


def with_slots(machine: Machine, g: np.random.Generator) -> Machine:
    """Return the machine with one or two slots on each unit."""
    capacity = machine.capacity.copy()
    column = machine.resource("slots")
    capacity[:, column] *= g.integers(1, 3, machine.n_owner)
    return machine.with_capacity(capacity)


def asked(case: vinesim.VineSimCase, seed: int) -> vinesim.VineSimCase:
    """Return the jobs with deadlines, classes and requests up to three times their durations; units have several slots."""
    g, n = np.random.default_rng(seed), len(case.workload)
    workload = replace(
        case.workload,
        requested=case.workload.duration * g.integers(1, 4, n),
        attributes={**case.workload.attributes, "deadline": g.integers(0, 200_000, n), "class": g.integers(0, 2, n)},
    )
    return replace(case, machine=with_slots(case.machine, g), workload=workload)


def kept(scheduler: Dispatch) -> Reopened:
    """Return a scheduler whose first dispatcher continues while fresh ones are compared with it in each pass."""
    watched = Reopened(scheduler, seed=1)
    watched.random.random = lambda: 1.0
    return watched


def watched(
    case: vinesim.VineSimCase,
    scheduler: Dispatch,
    seed: int,
    estimate: PerformanceModel | None = None,
    lost: list[tuple[int, int, int]] | None = None,
    reopened: bool = True,
) -> LoopResult:
    """Run a scheduler with checks; `lost` has (ns, unit, ns until one slot returns, 0 for never)."""
    slots = case.machine.resource("slots")
    gone = {unit: (time, back) for time, unit, back in lost or []}.items()
    disturbances = [Disturbance(time, unit, slots, -2) for unit, (time, _) in gone]
    disturbances += [Disturbance(time + back, unit, slots, 1) for unit, (time, back) in gone if back]
    simulation = Simulation(case.workload, case.machine, case.model, estimate, disturbances=disturbances)
    loop = run_loop(simulation, Reopened(scheduler, seed) if reopened else kept(scheduler), seed)
    assert not loop.refused and not loop.waiting
    assert disturbances or not loop.rejected
    schedule = simulation.recorder.schedule(case.workload, case.machine, loop)
    assert (schedule.done | np.isin(np.arange(len(case.workload)), list(loop.rejected))).all()
    return loop


LOST = st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 3), st.sampled_from((0, 30_000))), max_size=3)


@named
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    contended=st.booleans(),
    order=st.sampled_from(("fcfs", "edf", "sjf", "classes")),
    lost=LOST,
)
def test_reopened_dispatcher_decides_equally_for_any_row_order(
    entry: tuple[str, dict[str, object]], seed: int, contended: bool, order: str, lost: list[tuple[int, int, int]]
) -> None:
    case = asked(study(seed, 25).case(contended=contended), seed)
    watched(case, Dispatch(policy_of(entry), make("orders", order)), seed, case.estimate, lost)


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.sampled_from((100, 1000)), gap=st.sampled_from((20.0, 60.0)), reopened=st.booleans())
@example(seed=39, data=1000, gap=60.0, reopened=False)  # a fetching run ends, and its unit is free sooner than expected
def test_changing_expected_ends_are_read_in_each_pass(seed: int, data: int, gap: float, reopened: bool) -> None:
    """A scheduler that expects shared links sees the ends of all fetching runs change; data are large here."""
    this = study(seed, 40)
    table = this.tasks.table.copy()
    table[:, 1] *= data
    case = replace(this, tasks=vinesim.TaskList.of(table), gap=gap).case(contended=True)
    watched(case, Dispatch(make("placements", "earliest_finish")), seed, reopened=reopened)


class Crowded(Ideal):
    """Model in which a start takes longer the more runs there are, so that no run lasts as long as on the empty machine."""

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        return 1000 * sum(1 for _ in snapshot.runs())


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    contended=st.booleans(),
    order=st.sampled_from(("fcfs", "edf")),
    believes=st.sampled_from(("estimate", "model", "ideal", "crowded")),
    lost=st.just([]) | LOST,
    reopened=st.booleans(),
)
def test_lines_at_units_match_rebuilt_lines(
    seed: int, contended: bool, order: str, believes: str, lost: list[tuple[int, int, int]], reopened: bool
) -> None:
    """Earliest finish keeps tasks in line from pass to pass while all goes as expected, with good and bad estimates."""
    case = asked(study(seed, 25).case(contended=contended), seed)
    estimate = {"estimate": case.estimate, "model": case.model, "ideal": Ideal(), "crowded": Crowded()}[believes]
    watched(case, Dispatch(make("placements", "earliest_finish"), make("orders", order)), seed, estimate, lost, reopened)


SHARED = Combined((Affinity(), NetworkSharing(), Fetching()))
TROUBLE = st.builds(
    Fault,
    late=st.sampled_from((0.0, 0.5)),
    conflicts=st.sampled_from((0.0, 0.2)),
    refused=st.sampled_from((0.0, 0.2)),
    twice=st.sampled_from((0.0, 0.3)),
    withdrawn=st.sampled_from((0.0, 0.2)),
    unknown=st.sampled_from((0.0, 0.3)),
    leaving=st.integers(0, 3),
    draining=st.integers(0, 3),
    recycled=st.integers(0, 3),
    shuffled=st.booleans(),
)


@pytest.mark.long
@named
@settings(max_examples=3, deadline=None)
@example(trouble=Fault.of_all_kinds(), seed=1, model=SHARED, order="edf")
@given(
    trouble=TROUBLE,
    seed=st.integers(0, 1000),
    model=st.sampled_from((Affinity(), Combined((Affinity(), Transfer())), SHARED)),
    order=st.sampled_from(("fcfs", "edf")),
)
def test_each_task_runs_once_despite_faults(
    entry: tuple[str, dict[str, object]], trouble: Fault, seed: int, model: PerformanceModel, order: str
) -> None:
    """Starts are refused, late or at once, units come and go, jobs are withdrawn, rows are recycled."""
    scheduler = Reopened(Dispatch(policy_of(entry), make("orders", order)), seed)
    steps, problems = survive(scheduler, replace(units(seed=seed % 7), model=model), trouble, seed)
    assert steps and not problems


def test_cluster_without_faults_fetches_as_the_simulator() -> None:
    case, scheduler = replace(units(), model=SHARED), Dispatch(make("placements", "earliest_finish"))
    schedule = simulate(case.workload, case.machine, scheduler, model=SHARED).schedule
    starts = [(job, start) for job, _, start, _ in calm_starts(scheduler, case)]
    assert starts == list(zip(case.workload.id[schedule.job].tolist(), schedule.start.tolist(), strict=True))


def only_on_the_gpu(kinds: tuple[int, ...] = (2, 1, 2, 1), tasks: int = 1) -> vinesim.VineSimCase:
    """Return a GPU and a CPU; tasks of type 2 run only on the GPU, of type 1 only on the CPU; one job per microsecond."""
    rates = np.zeros((6, 7))
    rates[2, 2], rates[0, 1] = 1.0, 1.0
    rows = [(kind, 0, 0, 0, 10, 5, job) for job, kind in enumerate(kinds) for _ in range(tasks)]
    return vinesim.VineSimCase.of(vinesim.UnitList.of([(2, 0, 0), (0, 0, 1)]), vinesim.TaskList.of(rows), rates, 1)


@named
@pytest.mark.parametrize("back", [True, False])
def test_task_without_a_unit_waits_while_the_machine_may_grow_and_is_then_rejected(
    entry: tuple[str, dict[str, object]], back: bool
) -> None:
    """The GPU is lost at 500 ns, under job 0, and may return at 50 us. Tasks that need it block no other task."""
    case = only_on_the_gpu()
    slots = case.machine.resource("slots")
    changes = [Disturbance(500, 0, slots, -1), *([Disturbance(50_000, 0, slots, 1)] if back else [])]
    simulation = Simulation(case.workload, case.machine, case.model, disturbances=changes)
    loop, decisions = Loop(simulation, Dispatch(policy_of(entry))), []
    for batch in simulation.events():
        decisions += loop.step(batch).committed
    waits = {(decision.job, decision.refusal.reason) for decision in decisions if isinstance(decision, Wait)}
    starts = [(decision.job, decision.tasks) for decision in decisions if isinstance(decision, Start)]
    reason = "no unit may run tasks of type 2"
    schedule = simulation.recorder.schedule(case.workload, case.machine, loop.result)
    if back:
        assert waits == {(0, reason), (2, reason)} and not loop.result.rejected
        assert starts == [(0, (0,)), (1, (0,)), (3, (0,)), (0, (0,)), (2, (0,))]
        assert schedule.job_end.tolist() == [60_000, 11_000, 70_000, 21_000]
    else:
        assert not waits
        assert loop.result.rejected == dict.fromkeys((0, 2), f"cannot fit on the empty machine: {reason}")
        assert schedule.job_end[[1, 3]].tolist() == [11_000, 21_000]


@named
def test_later_arrival_with_an_earlier_deadline_precedes_tasks_in_line(entry: tuple[str, dict[str, object]]) -> None:
    """Four jobs for one GPU, 10 us each: 1 and 2 wait while 0 runs, then 3 arrives with a deadline between theirs."""
    case = only_on_the_gpu((2, 2, 2, 2))
    columns = {**case.workload.attributes, "deadline": np.array([1, 2, 4, 3]) * 10**6}
    workload = replace(case.workload, attributes=columns)
    simulation = Simulation(workload, case.machine, case.model)
    loop = run_loop(simulation, kept(Dispatch(policy_of(entry), make("orders", "edf"))))
    assert simulation.recorder.schedule(workload, case.machine, loop).job.tolist() == [0, 1, 3, 2]


@named
def test_job_withdrawn_while_waiting_or_in_line_leaves_no_trace(
    entry: tuple[str, dict[str, object]],
) -> None:
    """No event reports the withdrawal: jobs 0 to 3 need the GPU at once, for 10 us each; job 1 is withdrawn after 2 us."""
    case = only_on_the_gpu((2, 2, 2, 2))
    simulation = Simulation(case.workload, case.machine, case.model)
    loop = Loop(simulation, kept(Dispatch(policy_of(entry))))
    for batch in simulation.events():
        if batch.time == 2000:
            batch = replace(batch, events=(*batch.events, JobWithdrawn(1)))
        loop.step(batch)
    schedule = simulation.recorder.schedule(case.workload, case.machine, loop.result)
    assert not loop.result.refused
    assert schedule.job.tolist() == [0, 2, 3] and schedule.start.tolist() == [0, 10_000, 20_000]


@named
def test_refused_start_is_retried(entry: tuple[str, dict[str, object]]) -> None:
    """The first start is refused. Nothing happens until job 1 arrives; decisions are then as if no start had been tried."""

    class RefusesOnce(Simulation):
        refused = 0

        def commit(self, decisions: Decisions) -> CommitResult:
            if self.refused or not decisions.entries:
                return super().commit(decisions)
            self.refused += 1
            return CommitResult((), tuple((decision, "another scheduler was faster") for decision in decisions))

    case = only_on_the_gpu((2, 1), tasks=2)
    simulation = RefusesOnce(case.workload, case.machine, case.model)
    loop = run_loop(simulation, kept(Dispatch(policy_of(entry))))
    schedule = simulation.recorder.schedule(case.workload, case.machine, loop)
    assert len(loop.refused) == 1
    assert schedule.job.tolist() == [0, 1, 0, 1] and schedule.start.tolist() == [1000, 1000, 11_000, 11_000]


@named
def test_task_that_returns_to_its_job_is_served_again(entry: tuple[str, dict[str, object]]) -> None:
    """Three tasks of one job for one GPU; the first is refused after 5 us, while the others wait, and starts again at once."""
    case = only_on_the_gpu((2,), tasks=3)
    simulation = Simulation(case.workload, case.machine, case.model)
    loop, starts = Loop(simulation, kept(Dispatch(policy_of(entry)))), []
    for batch in simulation.events():
        starts += [(simulation.now, decision.tasks) for decision in loop.step(batch).committed]
        if simulation.now == 0:
            simulation._push(5000, 0, simulation._end(0, Outcome.REFUSED, True, set()))
            simulation._progress.clear()
    assert starts == [(0, (0,)), (5000, (0,)), (15_000, (1,)), (25_000, (2,))]


@named
def test_rejected_job_does_not_make_others_count_twice(entry: tuple[str, dict[str, object]]) -> None:
    """The GPU is lost before jobs 1 and 2 arrive together: 1 is rejected, the pass is repeated, and 2 starts once, after 0."""
    case = only_on_the_gpu((1, 2, 1))
    workload = replace(case.workload, submit=np.array([0, 1000, 1000]))
    lost = [Disturbance(500, 0, case.machine.resource("slots"), -1)]
    simulation = Simulation(workload, case.machine, case.model, disturbances=lost)
    loop = run_loop(simulation, kept(Dispatch(policy_of(entry))))
    schedule = simulation.recorder.schedule(workload, case.machine, loop)
    assert list(loop.rejected) == [1] and not loop.refused
    assert schedule.job.tolist() == [0, 2] and schedule.start.tolist() == [0, 10_000]


def test_run_that_merely_depends_on_a_unit_does_not_occupy_it() -> None:
    """Under a model in which units touch each other without slowing each other, earliest finish decides as before."""

    class Touching(Affinity):
        def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
            return tuple(np.flatnonzero(snapshot.machine.kind == Kind.NODE).tolist())

    for seed in range(4):
        case, scheduler = study(seed, 40).case(), Dispatch(make("placements", "earliest_finish"))
        first, other = (
            simulate(case.workload, case.machine, scheduler, model=case.model, estimate=estimate).schedule
            for estimate in (Affinity(), Touching())
        )
        assert difference(first, other) == ""


def test_unit_speeds_do_not_depend_on_time_or_on_known_run_times() -> None:
    class Slow(Ideal):
        def slowdown(self, run: Run, snapshot: Snapshot) -> float:
            return 7.0

    case = only_on_the_gpu()
    table, free = replace(case.workload, requested=np.full(4, UNKNOWN)).table, case.machine.capacity
    first, other = (
        Units(Snapshot(now, case.machine, table, free, free, RunTable(free.size), Slow())).offers(0) for now in (0, 10**15)
    )
    assert first == other and first
