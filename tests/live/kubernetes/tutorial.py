"""The commands of the tutorial, run in order, start a pod with a fabric device."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from poolwise.live.record import LiveRecord
from tests.live.kubernetes.control_plane import free_ports

ROOT = Path(__file__).parents[3]


def test_tutorial_commands_run(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "live", tmp_path / "tests" / "live", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "results").mkdir()
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "docs" / "tutorial" / "kubernetes.md").read_text(), re.M | re.S)
    last = blocks.pop()
    look = "kubectl get pod trainer -o jsonpath='{.spec.nodeName} {.status.phase}' >results/pod\n"
    script = "\n".join(["set -euo pipefail", 'trap "tests/live/kubernetes/kube-up.sh clean" EXIT', *blocks, look, last])
    environment = {**os.environ, "KUBE_PORT": str(free_ports()), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["timeout", "200", "bash", "-m", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    assert (tmp_path / "results" / "pod").read_text() == "n0 Running"
    assert "n0:memory=8192:cores=4000" in (tmp_path / "results" / "what-if.csv").read_text()
    job = LiveRecord.read(tmp_path / "results" / "record.jsonl").jobs["default/trainer"]
    assert job.started is not None and any("gpu-0" in place for place in job.placement)
