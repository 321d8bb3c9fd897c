"""Arrivals and ends under faults: every pod ends, no device is allocated twice, and memory stays flat.

`POOLWISE_SOAK_MINUTES` is the duration: one by default, 30 for a meaningful memory measurement. The scheduler is not killed,
because its memory must stay the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.live.kubernetes.api import Api
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import ControlPlane, control_plane
from tests.live.kubernetes.fault_workload import SCHEDULER, prepare, workload
from tests.live.kubernetes.faulty import Fault, faulty

MINUTES = float(os.environ.get("POOLWISE_SOAK_MINUTES", "1"))
WAVE = 20
"""Pods and gangs per wave; a new wave arrives every few seconds, and finished pods are deleted."""
GROWTH_MB = 8.0
"""Maximum growth of memory from the second third to the last."""
TROUBLE = Fault(conflict=0.02, busy=0.02, broken=0.02, unsent=0.02, unanswered=0.02, slow=0.02, cut=0.002, gone=0.5)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("kube")) as started:
        yield started


def resident(pid: int) -> float:
    """Return the resident memory of a process (MB)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def test_memory_stays_flat_under_arrivals_ends_and_faults(plane: ControlPlane, tmp_path: Path) -> None:
    prepare(plane)
    (tmp_path / "scheduler.toml").write_text(SCHEDULER)
    api, log = Api(plane), tmp_path / "poolwise.log"
    memory: list[float] = []
    made = done = wave = 0
    with faulty(plane, TROUBLE, 18) as server, log.open("ab") as file:
        command = [sys.executable, "-m", "poolwise", "live", "kubernetes", "--scheduler", str(tmp_path / "scheduler.toml")]
        process = subprocess.Popen([*command, "--kubeconfig", str(server.kubeconfig()), "--gang-limit", "20"], stderr=file)
        begun = looked = time.monotonic()
        try:
            while (now := time.monotonic()) - begun < 60 * MINUTES:
                assert process.poll() is None, log.read_text()[-3000:]
                if made - done < 4 * WAVE:
                    pods = workload(WAVE, f"w{wave}-")
                    api.create(pods)
                    made, wave = made + len(pods), wave + 1
                done += over(api)
                if now - looked > 60 * min(1.0, MINUTES / 10):
                    looked = now
                    memory.append(resident(process.pid))
                    violations = problems(plane, moving=True)
                    print(
                        f"minute {(now - begun) / 60:.1f}: {memory[-1]:.0f} MB, {done:,} of {made:,} pods are over", flush=True
                    )
                    assert violations == []
                time.sleep(2)
            until = time.monotonic() + 240
            while done < made:
                assert time.monotonic() < until, f"{made - done} are left: {plane.phases()}; {log.read_text()[-3000:]}"
                time.sleep(2)
                done += over(api)
        finally:
            process.terminate()
            process.wait(20)
            plane.clear()
    print(f"{made:,} pods, {server.writes:,} writes, {sum(server.faults.values()):,} faults: {dict(server.faults)}")
    third = len(memory) // 3
    before, last = np.median(memory[third : 2 * third]), np.median(memory[2 * third :])
    assert last - before <= GROWTH_MB, f"{before:.0f} MB in the second third, {last:.0f} MB in the last"


def over(api: Api) -> int:
    """Delete succeeded pods and return their number."""
    pods = api.ask("GET", "/api/v1/namespaces/default/pods?fieldSelector=status.phase=Succeeded")["items"]
    names = [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    for name in names:
        api.ask("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0")
    return len(names)
