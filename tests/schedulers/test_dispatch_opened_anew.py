"""Task dispatch holds nothing but caches: opened anew at any pass it decides alike, in a simulation and in any trouble."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise.conformance.cases import units
from poolwise.conformance.cluster import Trouble, survive
from poolwise.interfaces import PerformanceModel
from poolwise.loop import Loop, run_loop
from poolwise.model import Machine, Start, Wait, Withdrawn
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.fetching import Fetching
from poolwise.performance.ideal import Ideal
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.performance.transfer import Transfer
from poolwise.platforms.simulated import Disturbance, Simulation
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from tests.helpers.random_dispatch import POLICIES, policy_of, study
from tests.helpers.reopened import Reopened

named = pytest.mark.parametrize("entry", POLICIES, ids=[f"{name}-{kw}" for name, kw in POLICIES])


def with_slots(machine: Machine, g: np.random.Generator) -> Machine:
    """The machine with one or two slots on each unit."""
    capacity = machine.capacity.copy()
    column = machine.resource("slots")
    capacity[:, column] *= g.integers(1, 3, machine.n_owner)
    return machine.with_capacity(capacity)


def asked(case: vinesim.VineSimCase, seed: int) -> vinesim.VineSimCase:
    """The same jobs with deadlines, classes, and requests of up to three times their durations; units of several slots."""
    g, n = np.random.default_rng(seed), len(case.workload)
    workload = replace(
        case.workload,
        requested=case.workload.duration * g.integers(1, 4, n),
        attributes={**case.workload.attributes, "deadline": g.integers(0, 200_000, n), "class": g.integers(0, 2, n)},
    )
    return replace(case, machine=with_slots(case.machine, g), workload=workload)


@named
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    contended=st.booleans(),
    order=st.sampled_from(("fcfs", "edf", "sjf", "classes")),
    believes=st.sampled_from(("estimate", "truth", "ideal")),
    lost=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 3), st.sampled_from((0, 30_000))), max_size=3),
)
def test_opened_anew_at_any_pass_and_whatever_the_rows_it_decides_alike(
    entry: tuple[str, dict[str, object]],
    seed: int,
    contended: bool,
    order: str,
    believes: str,
    lost: list[tuple[int, int, int]],
) -> None:
    case = asked(study(seed, 25).case(contended=contended), seed)
    estimate = {"estimate": case.estimate, "truth": case.model, "ideal": Ideal()}[believes]
    slots = case.machine.resource("slots")
    gone = {unit: (time, back) for time, unit, back in lost}.items()
    disturbances = [Disturbance(time, unit, slots, -2) for unit, (time, _) in gone]
    disturbances += [Disturbance(time + back, unit, slots, 1) for unit, (time, back) in gone if back]
    simulation = Simulation(case.machine, case.workload, case.model, estimate, disturbances=disturbances)
    watched = Reopened(Dispatch(policy_of(entry), make("orders", order)), seed)
    loop = run_loop(simulation, watched, seed)
    assert watched.passes and not loop.refused and not loop.waiting
    assert disturbances or not loop.rejected
    schedule = simulation.recorder.schedule(case.machine, case.workload, loop)
    assert (schedule.done | np.isin(np.arange(len(case.workload)), list(loop.rejected))).all()


SHARED = Combined((Affinity(), NetworkSharing(), Fetching()))
TROUBLE = st.builds(
    Trouble,
    late=st.sampled_from((0.0, 0.5)),
    conflicts=st.sampled_from((0.0, 0.2)),
    refused=st.sampled_from((0.0, 0.2)),
    twice=st.sampled_from((0.0, 0.3)),
    withdrawn=st.sampled_from((0.0, 0.2)),
    unknown=st.sampled_from((0.0, 0.3)),
    leaving=st.integers(0, 3),
    renumbered=st.integers(0, 3),
    shuffled=st.booleans(),
)


@named
@settings(max_examples=3, deadline=None)
@example(trouble=Trouble.of_all_kinds(), seed=1, truth=SHARED, order="edf")
@given(
    trouble=TROUBLE,
    seed=st.integers(0, 1000),
    truth=st.sampled_from((Affinity(), Combined((Affinity(), Transfer())), SHARED)),
    order=st.sampled_from(("fcfs", "edf")),
)
def test_in_any_trouble_each_task_is_done_once_and_decided_alike(
    entry: tuple[str, dict[str, object]], trouble: Trouble, seed: int, truth: PerformanceModel, order: str
) -> None:
    """Starts are refused, late or at once, units come and go, jobs are taken back, rows are numbered anew."""
    scheduler = Reopened(Dispatch(policy_of(entry), make("orders", order)), seed)
    steps, problems = survive(scheduler, replace(units(seed=seed % 7), truth=truth), trouble, seed)
    assert steps and not problems


def only_on_the_gpu(kinds: tuple[int, ...] = (2, 1, 2, 1)) -> vinesim.VineSimCase:
    """A GPU and a CPU; tasks of type 2 run on the GPU alone, of type 1 on the CPU alone; a job each microsecond."""
    rates = np.zeros((6, 7))
    rates[2, 2], rates[0, 1] = 1.0, 1.0
    rows = [(kind, 0, 0, 0, 10, 5, k) for k, kind in enumerate(kinds)]
    return vinesim.VineSimCase.of(vinesim.UnitList.of([(2, 0, 0), (0, 0, 1)]), vinesim.TaskList.of(rows), rates, 1)


@named
@pytest.mark.parametrize("back", [True, False])
def test_what_no_unit_may_run_waits_while_the_machine_may_grow_and_is_rejected_then(
    entry: tuple[str, dict[str, object]], back: bool
) -> None:
    """The GPU is lost at 500 ns, under job 0, and may come back at 50 us. Nobody waits for who waits for it."""
    case = only_on_the_gpu()
    slots = case.machine.resource("slots")
    changes = [Disturbance(500, 0, slots, -1), *([Disturbance(50_000, 0, slots, 1)] if back else [])]
    simulation = Simulation(case.machine, case.workload, case.model, disturbances=changes)
    loop, said = Loop(simulation, Dispatch(policy_of(entry))), []
    for batch in simulation.events():
        said += loop.take(batch).committed
    waits = {(decision.job, decision.refusal.reason) for decision in said if isinstance(decision, Wait)}
    starts = [(decision.job, decision.tasks) for decision in said if isinstance(decision, Start)]
    reason = "no unit may run tasks of type 2"
    schedule = simulation.recorder.schedule(case.machine, case.workload, loop.result)
    if back:
        assert waits == {(0, reason), (2, reason)} and not loop.result.rejected
        assert starts == [(0, (0,)), (1, (0,)), (3, (0,)), (0, (0,)), (2, (0,))]
        assert schedule.job_end.tolist() == [60_000, 11_000, 70_000, 21_000]
    else:
        assert not waits
        assert loop.result.rejected == dict.fromkeys((0, 2), f"cannot fit on the empty machine: {reason}")
        assert schedule.job_end[[1, 3]].tolist() == [11_000, 21_000]


def kept(scheduler: Dispatch) -> Reopened:
    """Fresh ones are asked at each pass, but the first one goes on throughout."""
    watched = Reopened(scheduler, seed=1)
    watched.random.random = lambda: 1.0
    return watched


@named
def test_who_arrives_later_with_an_earlier_deadline_goes_before_those_in_line(entry: tuple[str, dict[str, object]]) -> None:
    """Four jobs for one GPU, 10 us each: 1 and 2 wait while 0 runs, then 3 arrives, whose deadline lies between theirs."""
    case = only_on_the_gpu((2, 2, 2, 2))
    columns = {**case.workload.attributes, "deadline": np.array([1, 2, 4, 3]) * 10**6}
    workload = replace(case.workload, attributes=columns)
    simulation = Simulation(case.machine, workload, case.model)
    loop = run_loop(simulation, kept(Dispatch(policy_of(entry), make("orders", "edf"))))
    assert simulation.recorder.schedule(case.machine, workload, loop).job.tolist() == [0, 1, 3, 2]


@named
def test_a_job_that_is_taken_back_while_it_waits_or_stands_in_line_leaves_no_trace(
    entry: tuple[str, dict[str, object]],
) -> None:
    """Nobody tells a dispatcher of it: jobs 0 to 3 want the GPU at once, for 10 us each, and job 1 is taken back after 2 us."""
    case = only_on_the_gpu((2, 2, 2, 2))
    simulation = Simulation(case.machine, case.workload, case.model)
    loop = Loop(simulation, kept(Dispatch(policy_of(entry))))
    for batch in simulation.events():
        if batch.time == 2000:
            batch = replace(batch, events=(*batch.events, Withdrawn(1)))
        loop.take(batch)
    schedule = simulation.recorder.schedule(case.machine, case.workload, loop.result)
    assert not loop.result.refused
    assert schedule.job.tolist() == [0, 2, 3] and schedule.start.tolist() == [0, 10_000, 20_000]
