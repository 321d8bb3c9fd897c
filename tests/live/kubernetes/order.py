"""Pods start in the order of the simulation, under the same scheduler file and with the same arrivals.

The simulation uses the machine and the jobs that `poolwise snapshot kubernetes` writes, the actual creation times, and the
actual run times under kwok. Arrivals and lengths are drawn so that no two events coincide; a different order is accepted only
between starts that are closer than the duration of a commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poolwise import simulation
from poolwise.cli.live import named_scheduler
from poolwise.files.state import read_state
from poolwise.live.record import LiveRecord
from poolwise.model import Schedule, Workload
from poolwise.model.state import MachineState
from poolwise.performance.ideal import Ideal
from poolwise.quantities import SECOND
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.control_plane import ControlPlane, scheduling

JOBS = 10
COMMIT_S = 0.2
"""Longest duration of a commit on a busy machine (s)."""
ATTEMPTS = 5
"""Number of times that a case is played until its order is determined: a busy machine creates pods late."""
OVERHEAD_S = 0.3
"""Time for which a kwok pod exists beyond its run time (s)."""


@dataclass(frozen=True)
class Case:
    """A cluster, its scheduler, and requests of pods of several sizes."""

    """A cluster, its scheduler, and pods of several sizes."""

    scheduler: str
    cluster: Sequence[dict[str, Any]]
    sizes: Sequence[dict[str, Any]] = field(default_factory=tuple)

    def pod(self, number: int, seconds: float) -> dict[str, Any]:
        size = dict(self.sizes[number % len(self.sizes)])
        pod = make.pod(f"p{number:02d}", seconds=seconds, **size)
        pod["metadata"]["annotations"]["poolwise/duration"] = f"{seconds + 1} s"
        return pod


def claiming(name: str, **more: Any) -> dict[str, Any]:
    return {"claims": {"c": {"resourceClaimTemplateName": name}}, **more}


def cases() -> dict[str, Case]:
    memory = [make.template(f"m{g}", make.exactly("memory", capacity={"requests": {"memory": f"{g}Gi"}})) for g in (32, 96)]
    racks = [make.node(f"n{k}", rack=f"r{k // 2}") for k in range(4)]
    pools = [make.devices("memory.example", r, make.memory_pool("pool", "128Gi"), rack=r) for r in ("r0", "r1")]
    fabric = make.devices("gpu.example", "all", *({"name": f"f{k}"} for k in range(3)))
    drive = {"value": "8Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}
    drives = [
        {"name": f"d{k}", "allowMultipleAllocations": True, "capacity": dict.fromkeys(("bandwidth", "space"), drive)}
        for k in range(2)
    ]
    disks = [
        make.template(f"disk{g}", make.exactly("nvme", capacity={"requests": {"bandwidth": f"{g}Gi", "space": "1Gi"}}))
        for g in (3, 6)
    ]
    gpus = [make.template(f"gpu{k}", make.exactly("gpu", count=k)) for k in (1, 2)]
    return {
        "fcfs": Case(
            'version = 1\norder = "fcfs"\nbackfill = "none"\nplacement = "first_fit"\n',
            [make.node(f"n{k}", cpu="4") for k in range(2)],
            [{"cpu": "3"}, {"cpu": "1"}, {"cpu": "2"}, {"cpu": "1500m"}],
        ),
        "easy": Case(
            'version = 1\norder = "fcfs"\nbackfill = "easy"\nplacement = "first_fit"\n',
            [make.node(f"n{k}", cpu="4") for k in range(2)],
            [{"cpu": "3"}, {"cpu": "1"}, {"cpu": "4"}, {"cpu": "1500m"}],
        ),
        "fair memory": Case(
            "catalog:fm-easy",
            [*racks, make.device_class("memory", "memory.example"), *pools, *memory],
            [claiming("m96"), {}, claiming("m32")],
        ),
        "flow": Case(
            "catalog:drmaestro",
            [*(make.node(f"n{k}", cpu="4") for k in range(2)), make.device_class("gpu", "gpu.example"), fabric, *gpus],
            [claiming("gpu2", cpu="2"), claiming("gpu1", cpu="1")],
        ),
        "composition": Case(
            'version = 1\nkind = "composition"\norder = "fcfs"\nplacement = "nvme_first_fit"\n',
            [
                *(make.node(f"n{k}", cpu="4") for k in range(2)),
                make.device_class("nvme", "nvme.example"),
                make.devices("nvme.example", "all", *drives),
                *disks,
            ],
            [claiming("disk6", cpu="2"), claiming("disk3", cpu="1")],
        ),
    }


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_pods_start_in_the_simulated_order(name: str, cluster: ControlPlane, tmp_path: Path) -> None:
    case, scheduler = CASES[name], CASES[name].scheduler
    if not scheduler.startswith("catalog:"):
        (tmp_path / "scheduler.toml").write_text(scheduler)
        scheduler = str(tmp_path / "scheduler.toml")
    cluster.apply(case.cluster)
    state = seen(cluster, case, scheduler, tmp_path / "state")
    arrivals, lengths = drawn(state, scheduler)
    for attempt in range(ATTEMPTS):
        record, created = played(cluster, case, scheduler, arrivals, lengths, tmp_path / f"record{attempt}.jsonl")
        jobs = sorted(record.jobs)
        ran = [(record.jobs[job].ended or 0) - (record.jobs[job].started or 0) for job in jobs]
        first = min(created)
        simulated = run(state, scheduler, [at - first for at in created], ran, lengths)
        live = {k: (record.jobs[job].started or 0) - first for k, job in enumerate(jobs)}
        ours = dict(zip(simulated.job.tolist(), simulated.start.tolist(), strict=True))
        assert live.keys() == ours.keys()
        apart = [abs(live[k] - ours[k]) / SECOND for k in sorted(live)]
        print(f"\n{name}: starts differ by {np.median(apart):.3f} s in the median, {max(apart):.3f} s at most", flush=True)
        mistakes = unexplained(live, ours)
        if not mistakes or is_decided(arrivals, created, simulated):
            break
        print(f"the order of {mistakes} is undetermined, since events came late", flush=True)
        cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    assert mistakes == []
    waited = sum(start - created[k] + first > SECOND for k, start in ours.items())
    assert waited >= JOBS // 4, "hardly any job waited, so the case proves nothing"


def is_decided(arrivals: Sequence[int], created: Sequence[int], simulated: Schedule) -> bool:
    """Return whether pods were created in their seconds, and no two simulated events are within a commit of each other."""
    seconds = [(at - arrivals[0]) // SECOND for at in arrivals]
    events = np.sort([*(at - min(created) for at in created), *simulated.end.tolist()])
    in_time = [(at // SECOND) - (created[0] // SECOND) for at in created] == seconds
    return in_time and bool(np.diff(events).min() > COMMIT_S * SECOND)


def unexplained(live: dict[int, int], simulated: dict[int, int]) -> list[tuple[int, int]]:
    """Return pairs of jobs that started in another order than simulated, with more than a commit between their starts."""
    return [(a, b) for a in live for b in live if simulated[a] + COMMIT_S * SECOND < simulated[b] and live[a] > live[b]]


def seen(cluster: ControlPlane, case: Case, scheduler: str, folder: Path) -> MachineState:
    """Return the machine and the jobs of a snapshot while no scheduler runs."""
    cluster.apply([case.pod(k, 1) for k in range(JOBS)])
    claims = sum("claims" in case.sizes[k % len(case.sizes)] for k in range(JOBS))
    cluster.wait(lambda: len(cluster.get("resourceclaims")) == claims, 30, "claims are made")
    command = [sys.executable, "-m", "poolwise", "snapshot", "kubernetes", "--out", str(folder), "--scheduler", scheduler]
    subprocess.run(command, env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig())}, check=True, stdout=subprocess.DEVNULL)
    cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    cluster.wait(lambda: not cluster.get("resourceclaims"), 30, "claims are gone")
    state = read_state(folder)
    assert [state.jobs.name(row) for row in state.waiting.tolist()] == [f"default/p{k:02d}" for k in range(JOBS)]
    return state


def run(
    state: MachineState, scheduler: str, submit: Sequence[int], duration: Sequence[int], lengths: Sequence[int]
) -> Schedule:
    """Simulate the jobs of a state with other arrivals and durations (ns); requested times exceed their lengths by a second."""
    jobs = state.jobs.taken(state.waiting)
    workload = Workload.of(
        np.array(submit),
        np.array(duration),
        requested=np.array([length + SECOND for length in lengths]),
        tasks=jobs.tasks,
        requests=jobs.requests,
        attributes=jobs.attributes,
    )
    return simulation.simulate(
        workload, state.machine, scheduler=named_scheduler(scheduler), model=Ideal(), engine="reference"
    ).schedule


def drawn(state: MachineState, scheduler: str) -> tuple[list[int], list[int]]:
    """Return arrivals and lengths (ns) for which jobs wait and no two simulated events are within a commit of each other.

    Pods arrive at whole seconds, because Kubernetes reports creation times in whole seconds and priorities depend on them.
    """
    for seed in range(1000):
        draw = np.random.default_rng(seed)
        arrivals = np.cumsum(draw.choice([1, 1, 1, 2], JOBS))
        submit, lengths = ((at * SECOND).astype(np.int64).tolist() for at in (arrivals, draw.integers(30, 90, JOBS) / 10))
        schedule = run(state, scheduler, submit, [int(length + OVERHEAD_S * SECOND) for length in lengths], lengths)
        events = np.sort([*submit, *schedule.end.tolist()])
        if schedule.n_run == JOBS and np.diff(events).min() > COMMIT_S * SECOND:
            return submit, lengths
    raise AssertionError("found no arrivals whose events are far enough apart")


def played(
    cluster: ControlPlane, case: Case, scheduler: str, arrivals: Sequence[int], lengths: Sequence[int], file: Path
) -> tuple[LiveRecord, list[int]]:
    """Create the pods at their arrival times; return the record of the run and the creation times (ns since 1970)."""
    created: list[int] = []
    with scheduling(cluster, scheduler, "--record", str(file), "--state", str(file.parent / "kept")):
        cluster.wait(lambda: file.exists() and file.stat().st_size > 0, 30, "the scheduler is up")
        time.sleep(2)
        begun = -(-time.time_ns() // SECOND) * SECOND
        for k, (at, length) in enumerate(zip(arrivals, lengths, strict=True)):
            pod = json.dumps(case.pod(k, length / SECOND))
            time.sleep(max(0.0, (begun + at - time.time_ns()) / SECOND))
            cluster.kubectl("create", "-f", "-", given=pod)
            created.append(time.time_ns())
        cluster.wait_done(120)
        cluster.wait(lambda: file.read_text().count('"ended"') >= JOBS, 20, "all ends are recorded")
    return LiveRecord.read(file), created
