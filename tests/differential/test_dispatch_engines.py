"""Task dispatch: compiled and reference engine produce the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from poolwise.engines import Disturbance, simulate
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.dispatch.replay import unsupported
from poolwise.errors import InputError
from poolwise.performance.affinity import Affinity
from poolwise.performance.combined import Combined
from poolwise.performance.ideal import Ideal
from poolwise.performance.transfer import Transfer
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from tests.helpers.random_dispatch import POLICIES, TIERED, compare, policy_of, study
from tests.helpers.random_studies import difference


@pytest.mark.parametrize("block", range(4))
def test_random_studies(block: int) -> None:
    for seed in range(6 * block, 6 * block + 6):
        compare(seed)


@pytest.mark.long
def test_random_studies_without_compiling() -> None:
    """With the compiler disabled, the kernels run as Python code with the same result."""
    script = "from tests.helpers.random_dispatch import compare\nfor seed in range(100, 108): compare(seed, 40)\n"
    path = os.pathsep.join(sys.path)  # so that the subprocess finds the package and the test helpers
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_many_tasks_on_many_units() -> None:
    """500 tasks with data on 400 units of two types in ten racks, overloaded."""
    g = np.random.default_rng(0)
    rates = np.zeros((6, 7))
    rates[0, :2], rates[2, :2] = (60_000, 60_000), (12_000, 1_200_000)
    units = [(2 * int(g.integers(2)), k // 40, k % 40 // 2) for k in range(400)]
    rows = [(int(k % 7 == 0), 1000 * (k % 3), k % 2, k % 5, 10**6 * (1 + k % 4), 5, k) for k in range(500)]
    case = vinesim.VineSimCase.of(vinesim.UnitList.of(units), vinesim.TaskList.of(rows), rates, "20ns")
    for entry in (("flat", {}), ("high", {}), ("closer_to_data", {"tie": "random"})):
        runs = [
            simulate(case.workload, case.machine, Dispatch(policy_of(entry)), model=case.model, engine=engine).schedule
            for engine in ("reference", "compiled")
        ]
        assert difference(*runs) == "", entry


def test_auto_selects_the_compiled_engine_if_supported() -> None:
    case = study(2).case()
    shared = study(2).case(contended=True)
    for entry in POLICIES:
        scheduler = Dispatch(policy_of(entry))
        assert simulate(case.workload, case.machine, scheduler, model=case.model).engine == (
            "compiled" if entry in TIERED else "reference"
        )
        result = simulate(shared.workload, shared.machine, scheduler, model=shared.model, estimate=shared.estimate)
        assert result.engine == "reference"
    lost = [Disturbance(5, 0, 0, -1), Disturbance(9, 0, 0, 1)]
    assert simulate(case.workload, case.machine, Dispatch(), model=case.model, disturbances=lost).engine == "reference"
    with pytest.raises(InputError, match="no kernel runs this: placement Delay has no kernel"):
        simulate(case.workload, case.machine, Dispatch(policy_of(("delay", {}))), model=case.model, engine="compiled")


class Twice(Combined):
    """A subclass of a combined model, which may compute slowdowns differently."""


class Stated(Combined):
    """A user-defined model that states its parts."""

    parts = property(lambda self: self.models)


def test_combined_models_are_compiled_by_their_parts() -> None:
    case = study(2).case()
    models, plain = (Affinity(), Transfer()), simulate(case.workload, case.machine, Dispatch(), model=case.model)
    for model in (Combined((Combined(models[:1]), Ideal(), *models[1:])), Stated(models)):
        result = simulate(case.workload, case.machine, Dispatch(), model=model)
        assert result.engine == "compiled" and difference(result.schedule, plain.schedule) == ""
    for model, why in ((Twice(models), "model Twice"), (Combined((*models, Transfer(local=3))), "given twice")):
        assert why in str(unsupported(RunSpec(case.workload, case.machine, Dispatch(), model, model)))


def test_network_of_unequal_ports_uses_the_reference_engine() -> None:
    case = study(2).case()
    capacity = case.machine.capacity.copy()
    port = case.machine.owners.index("port.0.0")
    capacity[port, case.machine.resource("bandwidth")] = 7
    machine = case.machine.with_capacity(capacity)
    assert "equal ports" in str(unsupported(RunSpec(case.workload, machine, Dispatch(), case.model, case.model)))
    assert not unsupported(RunSpec(case.workload, machine, Dispatch(), Affinity(), Affinity()))
