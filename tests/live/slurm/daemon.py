"""`poolwise live slurm` as a process that schedules a test's Slurm, and its log."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.live.slurm.cluster import Cluster

ROOT = Path(__file__).parents[3]


class Daemon:
    """A running `poolwise live slurm`.

    Parameters
    ----------
    folder
        Folder of its log and state; a later process with the same folder resumes.
    options
        Further options of `poolwise live slurm`.
    """

    def __init__(self, cluster: Cluster, folder: Path, *options: str) -> None:
        self.log = folder / "live.log"
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "poolwise", "live", "slurm", "--state", str(folder / "state"), *options]
        with self.log.open("ab") as log:
            env = {**cluster.env, "PYTHONPATH": str(ROOT / "src")}
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=folder)

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop it with SIGTERM, as systemd does; a process that has not installed its handler yet dies from the signal."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        assert code in (0, -signal.SIGKILL, -signal.SIGTERM), f"exit code {code}: {self.log.read_text()[-2000:]}"

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines of an event, with times in seconds since 1970."""
        events = []
        for line in self.log.read_text().splitlines():
            if line.startswith("{") and line.endswith("}"):
                content = json.loads(line)
                if content["event"] == event:
                    events.append({**content, "time": datetime.fromisoformat(content["time"]).timestamp()})
        return events

    def assert_healthy(self) -> None:
        """Raise AssertionError if the process has exited or printed anything besides its log."""
        other = [line for line in self.log.read_text().splitlines() if not line.startswith("{")]
        assert self.process.poll() is None and not other, "\n".join(other[-30:])
