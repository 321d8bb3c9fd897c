"""What looks at a real Slurm and changes nothing, and the way back from place mode: `make test-live`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from poolwise.files.state import read_state
from tests.live.slurm.cluster import Cluster, why_not
from tests.live.slurm.daemon import ROOT, Daemon
from tests.live.slurm.placing import LINES
from tests.live.slurm.witness import wait_for

pytestmark = pytest.mark.skipif(bool(why_not(False)), reason=why_not(False) or "a Slurm is installed")
FM = ("--scheduler", "catalog:fm-easy", "--partition", "pools")


def test_shadow_snapshot_explain_and_the_way_back(tmp_path: Path) -> None:
    with Cluster(LINES.replace("JobSubmitPlugins=lua\n", ""), accounting=False) as cluster:

        def poolwise(*words: str) -> str:
            env = {**cluster.env, "PYTHONPATH": str(ROOT / "src")}
            command = [sys.executable, "-m", "poolwise", *words]
            return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120).stdout

        def submit(nodes: int, seconds: float) -> str:
            comment = "--comment=memory=80GiB mine"
            return str(cluster.run("-p", "pools", f"-N{nodes}", "-t5", comment, seconds=seconds))

        long, waits = submit(10, 300), submit(12, 1)
        wait_for("it runs", lambda: cluster.ask("squeue", "-h", "-t", "RUNNING"), 20)
        before = cluster.ask("squeue", "-h", "-o", "%i %T %Q %n %W %k")
        record = tmp_path / "shadow.jsonl"
        with Daemon(
            cluster, tmp_path / "shadow", "--mode", "shadow", *FM, "--record", str(record), "--interval", "0.3"
        ) as daemon:
            wait_for("it looks on", lambda: record.exists() and long in record.read_text(), 60)
            small = submit(2, 4)
            wait_for("it ran", lambda: small not in cluster.ask("squeue", "-h", "-o", "%i").split(), 60)
            wait_for("its end is seen", lambda: any(line["job"] == small for line in daemon.said("ended")), 30)
            daemon.well()
        assert cluster.ask("squeue", "-h", "-o", "%i %T %Q %n %W %k") == before, "shadow mode changes nothing"
        compared = json.loads(poolwise("compare", str(record), "--json"))
        jobs = {job["job"]: job for job in compared["jobs"]}
        assert jobs[small]["wait_s"] is not None and jobs[small]["placement"] and jobs[waits]["wait_s"] is None
        said = json.loads(poolwise("explain", "--live", waits, *FM, "--json"))
        assert (said["resource"], said["needed"], said["free"]) == ("nodes", 12, 6)
        assert f"it first fits after job {long} ends, expected at" in said["text"]
        poolwise("snapshot", "slurm", "--out", str(tmp_path / "now"), "--partition", "pools")
        state = read_state(tmp_path / "now")
        assert [state.jobs.name(run.job) for run in state.running] == [long]
        assert [state.jobs.name(row) for row in state.waiting.tolist()] == [waits]
        with Daemon(cluster, tmp_path / "place", "--mode", "place", *FM, "--interval", "0.3"):
            wait_for(
                "it is told why", lambda: "poolwise: not enough" in cluster.ask("squeue", "-h", "-j", waits, "-o", "%k"), 60
            )
        assert cluster.ask("squeue", "-h", "-j", waits, "-o", "%r").strip() == "JobHeldAdmin"
        assert "1 jobs" in poolwise("live", "slurm", "--mode", "place", *FM, "--give-back")
        shown = cluster.ask("squeue", "-h", "-j", waits, "-o", "%r %n %W %k").split(maxsplit=2)
        assert shown[0] in ("Resources", "Priority", "None") and "given back to Slurm: place mode was ended" in shown[-1]
