"""Read-only commands against a real Slurm, and giving jobs back from place mode: `make test-live`."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from poolwise.files.state import read_state
from tests.live.slurm.cluster import Cluster, missing_programs
from tests.live.slurm.daemon import ROOT, Daemon
from tests.live.slurm.placing import LINES
from tests.live.slurm.witness import wait_for

pytestmark = pytest.mark.skipif(bool(missing_programs(False)), reason=missing_programs(False) or "Slurm is installed")
FM = ("--scheduler", "catalog:fm-easy", "--partition", "pools")


@contextmanager
def exported(cluster: Cluster, *words: str) -> Iterator[Callable[[], str]]:
    """Start a process that serves metrics and yield a function that reads them."""
    env = {**cluster.env, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "poolwise", *words]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        events = (json.loads(line) for line in process.stderr if line.startswith("{"))
        port = next(line["port"] for line in events if line["event"] == "listening")
        yield lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        process.terminate()
        assert process.wait(30) == 0


def test_shadow_snapshot_explain_forecast_and_give_back(tmp_path: Path) -> None:
    with Cluster(LINES.replace("JobSubmitPlugins=lua\n", ""), accounting=False) as cluster:

        def poolwise(*words: str) -> str:
            env = {**cluster.env, "PYTHONPATH": str(ROOT / "src")}
            command = [sys.executable, "-m", "poolwise", *words]
            return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120).stdout

        def submit(nodes: int, seconds: float) -> str:
            comment = "--comment=memory=80GiB mine"
            return str(cluster.run("-p", "pools", f"-N{nodes}", "-t5", comment, seconds=seconds))

        long, waits = submit(10, 300), submit(12, 1)
        wait_for("it runs", lambda: cluster.call("squeue", "-h", "-t", "RUNNING"), 20)
        before = cluster.call("squeue", "-h", "-o", "%i %T %Q %n %W %k")
        record = tmp_path / "shadow.jsonl"
        with Daemon(
            cluster, tmp_path / "shadow", "--mode", "shadow", *FM, "--record", str(record), "--interval", "0.3"
        ) as daemon:
            wait_for("it is recorded", lambda: record.exists() and long in record.read_text(), 60)
            small = submit(2, 4)
            wait_for("it ran", lambda: small not in cluster.call("squeue", "-h", "-o", "%i").split(), 60)
            wait_for("its end is logged", lambda: any(line["job"] == small for line in daemon.events("ended")), 30)
            daemon.assert_healthy()
        assert cluster.call("squeue", "-h", "-o", "%i %T %Q %n %W %k") == before, "shadow mode changes nothing"
        compared = json.loads(poolwise("compare", str(record), "--json"))
        jobs = {job["job"]: job for job in compared["jobs"]}
        assert jobs[small]["wait_s"] is not None and jobs[small]["placement"] and jobs[waits]["wait_s"] is None
        explained = json.loads(poolwise("explain", "live", "slurm", waits, *FM, "--json"))
        assert (explained["resource"], explained["needed"], explained["free"]) == ("nodes", 12, 6)
        assert f"it first fits after job {long} ends, expected at" in explained["text"]
        forecast = ("forecast", "live", "slurm", *FM, "--samples", "20")
        forecast_ = json.loads(poolwise(*forecast, "--job", waits, "--by", "10min", "--json"))
        (job,) = forecast_["jobs"]
        assert job["job"] == f"job {waits}" and 0 < job["wait_p10_s"] <= job["wait_p90_s"] <= 300 and job["chance_by"] == 1.0
        assert {change["change"]: change["wait_p90_s"] for change in forecast_["changes"]}["with 6 nodes instead of 12"] == 0.0
        with exported(cluster, *forecast, "--port", "0", "--every", "0.5") as metrics:
            assert f'poolwise_forecast_start_timestamp_seconds{{chance="0.5",job="{waits}"}}' in metrics()
        poolwise("snapshot", "slurm", "--out", str(tmp_path / "now"), "--partition", "pools")
        state = read_state(tmp_path / "now")
        assert [state.jobs.name(run.job) for run in state.running] == [long]
        assert [state.jobs.name(row) for row in state.waiting.tolist()] == [waits]
        with Daemon(cluster, tmp_path / "place", "--mode", "place", *FM, "--interval", "0.3"):
            wait_for(
                "its wait reason is written",
                lambda: "poolwise: not enough" in cluster.call("squeue", "-h", "-j", waits, "-o", "%k"),
                60,
            )
        assert cluster.call("squeue", "-h", "-j", waits, "-o", "%r").strip() == "JobHeldAdmin"
        assert "1 jobs" in poolwise("live", "slurm", "--mode", "place", *FM, "--release")
        shown = cluster.call("squeue", "-h", "-j", waits, "-o", "%r %n %W %k").split(maxsplit=2)
        assert shown[0] in ("Resources", "Priority", "None") and "released to Slurm: place mode was ended" in shown[-1]
