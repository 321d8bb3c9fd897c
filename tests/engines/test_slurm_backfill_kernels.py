"""Machines on which the backfill `slurm` has a kernel, as docs/how-to/start-from-slurm.md states."""

import pytest

import poolwise
from poolwise import ListScheduler, Machine, policies
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_scheduling.replay import unsupported as unsupported_whole
from poolwise.engines.shared_nodes.supported import unsupported as unsupported_shared
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.slurm import SlurmBackfill
from tests.helpers.data import ROOT


def shared(pool: bool = False) -> Machine:
    build = poolwise.MachineBuilder("shared")
    for k in range(3):
        build.node(f"node{k}", cores=4 * (1 + k % 2), memory="16 GiB")
    if pool:
        build.pool("pool", "64 GiB", rack=0)
    return Machine.of(build)


def spec(machine: Machine, whole: bool, settings: dict[str, int] | None = None, tasks: int = 1) -> RunSpec:
    requests = {} if whole else {"cores": 2, "memory": "1 GiB"}
    jobs = poolwise.Workload.of(["0 s"] * 4, "1 min", requests=requests, tasks=tasks)
    placement = policies.RackPlacement() if whole else policies.FirstNodes()
    scheduler = ListScheduler(policies.FCFS(), SlurmBackfill(settings=settings or {}), placement)
    return RunSpec(jobs, machine, scheduler, Ideal(), Ideal())


def test_kernels_support_the_backfill_on_shared_nodes() -> None:
    assert unsupported_shared(spec(shared(), whole=False)) is None


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (
            spec(shared(), False, {"bf_max_job_user": 3, "bf_max_job_part": 4}),
            "bf_max_job_user, bf_max_job_part of the backfill",
        ),
        (spec(shared(), False, {"bf_max_job_assoc": 3}), "bf_max_job_assoc of the backfill has no kernel"),
        (spec(shared(), False, {"bf_min_prio_reserve": 3}), "bf_min_prio_reserve of the backfill has no kernel"),
        (spec(shared(), False, {"bf_job_part_count_reserve": 3}), "bf_job_part_count_reserve of the backfill has no kernel"),
        (spec(shared(), False, tasks=2), "several tasks"),
    ],
)
def test_exceptions_on_shared_nodes_use_the_reference_engine(run: RunSpec, why: str) -> None:
    assert why in str(unsupported_shared(run))


def test_kernels_support_the_backfill_on_identical_whole_nodes_only() -> None:
    limited = spec(Machine.of_racks(1, 3, local="16 GiB", cores=8), True, {"bf_max_job_assoc": 3})
    assert "bf_max_job_assoc of the backfill has no kernel; supported without" in str(unsupported_whole(limited))
    same = spec(Machine.of_racks(1, 3, local="16 GiB", cores=8), whole=True)
    assert unsupported_whole(same) is None
    assert "backfilling at intervals on mixed nodes" in str(unsupported_whole(same, mixed=True))


def test_guide_lists_the_exceptions() -> None:
    text = (ROOT / "docs/how-to/start-from-slurm.md").read_text()
    cost = text[text.index("## Cost") :]
    for words in (
        "bf_max_job_user",
        "bf_max_job_assoc",
        "bf_min_prio_reserve",
        "bf_job_part_count_reserve",
        "QOS limits",
        "whole nodes of different sizes",
        "memory pools",
        "windows",
        "several tasks",
    ):
        assert words in cost
