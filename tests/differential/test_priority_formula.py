"""Priorities that kernels recalculate by their formula equal those of the reference engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poolwise.engines import recalculations, simulate
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.random_studies import difference
from tests.helpers.share_trees import random_multifactor

pytestmark = pytest.mark.filterwarnings("ignore:.*without a share")


def check_formula(seed: int, folder: Path) -> None:
    """Compare the engines on random jobs under a random multifactor order."""
    g = np.random.default_rng(seed)
    on, jobs = random_machine(g, pools=False), int(g.integers(5, 60))
    load = random_jobs(g, on, jobs)
    order, columns = random_multifactor(g, jobs, folder)
    load = replace(load, attributes={**load.attributes, **columns})
    settings = {
        "bf_interval": int(g.choice([7, 30])), "bf_window": int(g.choice([20, 1440])),
        "bf_max_job_test": int(g.choice([3, 10, 500])),
    }  # fmt: skip
    how = ListScheduler(order, SlurmBackfill(None, settings), FirstNodes())
    plain, fast = (simulate(load, on, how, engine=engine) for engine in ("reference", "compiled"))
    assert fast.engine == "compiled"
    assert difference(plain.schedule, fast.schedule) == "", f"seed {seed}: {order.settings}"


@pytest.fixture(autouse=True)
def no_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a kernel asks for priorities instead of following the formula."""
    monkeypatch.setattr(recalculations.Recalculations, "recalculate", lambda *_: pytest.fail("the kernel has no formula"))


@pytest.mark.parametrize(
    "seed", [*range(5101, 5108), *(pytest.param(k, marks=pytest.mark.long) for k in (5100, *range(5108, 5116)))]
)
def test_kernel_follows_the_formula(seed: int, tmp_path: Path) -> None:
    check_formula(seed, tmp_path)


@pytest.mark.long
@pytest.mark.further
@pytest.mark.parametrize("seed", range(5116, 5180))
def test_kernel_follows_further_formulas(seed: int, tmp_path: Path) -> None:
    check_formula(seed, tmp_path)
