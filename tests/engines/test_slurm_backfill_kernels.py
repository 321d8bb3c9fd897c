"""Machines on which the backfill `slurm` has a kernel, as docs/how-to/start-from-slurm.md states."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import poolwise
from poolwise import ListScheduler, Machine, policies
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_scheduling.replay import unsupported as unsupported_whole
from poolwise.engines.shared_nodes.supported import unsupported as unsupported_shared
from poolwise.model import QualityOfService
from poolwise.performance.ideal import Ideal
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.registry import make
from poolwise.schedulers.warm_up import WarmUp
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


def licensed(run: RunSpec) -> RunSpec:
    """Return a run whose jobs request licenses."""
    jobs = replace(run.workload, attributes={"license/a": np.ones(len(run.workload), dtype=np.int64)})
    return replace(run, workload=jobs, machine=replace(run.machine, licenses={"a": 1}))


def limited(run: RunSpec) -> RunSpec:
    """Return a run on a machine with a limit of a QOS."""
    return replace(run, machine=replace(run.machine, qos=(QualityOfService("normal", True, total=(("jobs", 2),)),)))


def under(run: RunSpec, name: str) -> RunSpec:
    """Return a run under another backfill."""
    assert isinstance(run.scheduler, ListScheduler)
    return replace(run, scheduler=replace(run.scheduler, backfill=make("backfills", name)))


def test_kernels_support_the_backfill_on_shared_nodes() -> None:
    assert unsupported_shared(spec(shared(), whole=False)) is None


@pytest.mark.parametrize("limit", [licensed, limited])
@pytest.mark.parametrize("name", ["none", "easy", "slurm"])
def test_kernels_support_limits_of_use_on_shared_nodes(limit: Callable[[RunSpec], RunSpec], name: str) -> None:
    assert unsupported_shared(under(limit(spec(shared(), whole=False)), name)) is None


@pytest.mark.parametrize(("limit", "why"), [(licensed, "jobs request licenses (a)"), (limited, "QOS limits apply")])
def test_other_runs_with_limits_of_use_use_the_reference_engine(limit: Callable[[RunSpec], RunSpec], why: str) -> None:
    run = limit(spec(shared(), whole=False))
    reserving = unsupported_shared(under(run, "conservative"))
    assert reserving is not None and reserving.why == f"{why}, and every job has a reservation"
    warm = replace(run, scheduler=WarmUp.before(run.scheduler, 2), pass_per_event=True)
    each = unsupported_shared(warm)
    assert each is not None and each.why == f"{why}, and the run has a warm-up and pass_per_event"
    assert unsupported_shared(replace(warm, pass_per_event=False)) is None
    whole = unsupported_whole(limit(spec(Machine.of_racks(1, 3, local="16 GiB", cores=8), whole=True)))
    assert whole is not None and whole.why == why


def test_jobs_of_several_tasks_on_shared_nodes_use_the_reference_engine() -> None:
    assert "several tasks" in str(unsupported_shared(spec(shared(), False, tasks=2)))


def test_kernels_support_the_backfill_on_identical_whole_nodes_only() -> None:
    for setting, why in (
        (
            "bf_max_job_assoc",
            "a limit on the jobs of a user and account that a backfill pass tests has no kernel on whole nodes",
        ),
        ("bf_min_prio_reserve", "a minimum priority of jobs with reservations has no kernel on whole nodes"),
        ("bf_job_part_count_reserve", "a limit on reservations per partition has no kernel on whole nodes"),
    ):
        refused = str(unsupported_whole(spec(Machine.of_racks(1, 3, local="16 GiB", cores=8), True, {setting: 3})))
        assert why in refused and setting in refused
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
        "licenses",
        "whole nodes of different sizes",
        "memory pools",
        "windows",
        "several tasks",
    ):
        assert words in cost
