"""Composed devices: compiled and reference engine produce the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.performance.ideal import Ideal
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.policies.order.priorities import EDF, FCFS, SJF
from poolwise.policies.placement.nvme.composition import CompositionPolicy
from poolwise.policies.placement.nvme.policies import (
    NvmeDisaggregationAware,
    NvmeFirstFit,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
)
from poolwise.schedulers.composition import CompositionScheduler
from tests.helpers.nvme_examples import KINDS, SHARING, machine, workload
from tests.helpers.random_studies import difference

FROZEN = NvmeSharing(SHARING.tables, fixed_at_start=True)
MODELS: tuple[PerformanceModel, ...] = (SHARING, FROZEN, Ideal())
POLICIES: tuple[CompositionPolicy, ...] = (
    NvmeFirstFit(),
    NvmeFirstFit(share=True),
    NvmeMaximizeComposition(),
    NvmeMaximizeComposition(max_extension=0.2, late_shares=False),
    NvmeMaximizeComposition(smallest_k_meeting_deadline=True, fitness_as_printed=True),
    NvmeMaximizeComposition(each_parameter=True),
    NvmeMinimizeFragmentation(),
    NvmeMinimizeFragmentation(alpha_as_printed=True, late_shares=False),
    NvmeDisaggregationAware(),
    NvmeDisaggregationAware(capacity_alone=True),
)
FIVE_NODES = machine(nodes=(25,) * 5, devices=((2000, 600),) * 10)
ONE_JOB = workload([(0, "fio")])


def check_engines_agree_on_devices(seed: int, jobs: int = 60) -> None:
    """Compare the engines on a random machine and workload under every policy and a model."""
    g = np.random.default_rng(seed)
    nodes = g.choice([15, 25, 40], size=int(g.integers(1, 4))).tolist()
    homes = g.integers(-1, len(nodes), size=int(g.integers(1, 7))).tolist()
    sizes = {home: [(2000, 600), (1000, 300), (3000, 900)][int(g.integers(3))] for home in homes}
    there = machine(nodes, [sizes[home] for home in homes], homes)
    submit = np.sort(g.integers(0, int(g.integers(1, 40)) * jobs, size=jobs)).tolist()
    kinds = [sorted(KINDS)[k] for k in g.integers(0, len(KINDS), size=jobs).tolist()]
    slack = g.choice([0.5, 1.0, 1.02, 1.2, 2.0, 4.0], size=jobs).tolist()
    due = [s + factor * KINDS[kind][0] for s, factor, kind in zip(submit, slack, kinds, strict=True)]
    work, model = workload(list(zip(submit, kinds, strict=True)), due), MODELS[seed % 3]
    for policy in POLICIES:
        scheduler = CompositionScheduler(FCFS() if seed % 5 == 0 else EDF(), policy)
        auto, reference = (simulate(work, there, scheduler, model=model, engine=engine) for engine in ("auto", "reference"))
        assert auto.obstacle is None or "does not fit on the empty machine" in auto.obstacle.why
        assert difference(auto.schedule, reference.schedule) == "", (seed, policy)


@pytest.mark.parametrize("block", [0, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 2))])
def test_random_compositions(block: int) -> None:
    for seed in range(6 * block, 6 * block + 6):
        check_engines_agree_on_devices(seed)


@pytest.mark.long
def test_random_compositions_without_compiling() -> None:
    """With the compiler disabled, the kernel runs as Python code with the same result."""
    module = "tests.differential.test_composition_engines"
    script = f"from {module} import check_engines_agree_on_devices as check\nfor seed in range(100, 106): check(seed, 40)\n"
    path = os.pathsep.join(sys.path)  # so that the subprocess finds the package and the test helpers
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


@pytest.mark.long
def test_overloaded_pool_runs_in_the_kernel() -> None:
    jobs = workload([(20 * k, ("smufin", "capacity", "compute", "fio")[k % 4]) for k in range(300)], factor=2.0)
    for policy in POLICIES:
        scheduler = CompositionScheduler(EDF(), policy)
        compiled, reference = (
            simulate(jobs, FIVE_NODES, scheduler, model=SHARING, engine=engine) for engine in ("compiled", "reference")
        )
        assert compiled.engine == "compiled"
        assert difference(compiled.schedule, reference.schedule) == "", policy


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("order SJF has no kernel on composed devices", {"scheduler": CompositionScheduler(SJF())}),
        ("count_waiting is set", {"scheduler": CompositionScheduler(EDF(), NvmeDisaggregationAware(count_waiting=True))}),
        ("the devices of a location differ in size", {"machine": machine(devices=((2000, 600), (1000, 300)))}),
        ("a fabric limits the bandwidth", {"machine": machine(fabric=5000)}),
        ("with partners", {"model": NvmeSharing(SHARING.tables, {"fio": ("smufin",), "smufin": ("fio",)})}),
        ("estimates differ from the model", {"estimate": FROZEN}),
        ("run times differ from the requested times", {"workload": replace(ONE_JOB, duration=ONE_JOB.duration - 1)}),
        ("does not fit on the empty machine", {"machine": machine(nodes=(1,))}),
        ("pass_per_event is set", {"pass_per_event": True}),
    ],
)
def test_unsupported_compositions_use_the_reference_engine(reason: str, change: dict[str, object]) -> None:
    study = {"workload": ONE_JOB, "machine": FIVE_NODES, "scheduler": CompositionScheduler(), "model": SHARING, **change}
    run = simulate(**study)  # type: ignore[arg-type]  # arguments by name
    assert run.engine == "reference"
    assert reason in str(run.obstacle)
    with pytest.raises(InputError, match=reason):
        simulate(**study, engine="compiled")  # type: ignore[arg-type]
