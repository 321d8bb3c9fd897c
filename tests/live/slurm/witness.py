"""Independent observer of Slurm: samples running jobs with their nodes and licenses, and reads the controller's log."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from datetime import datetime

from poolwise.slurm import hostlist
from tests.helpers.machine_speed import slowness
from tests.live.slurm.cluster import Cluster

_ALLOCATED = re.compile(r"\[(?P<at>[^]]+)] sched(?:/backfill)?: (?:_start_job: Started|Allocate) JobId=(?P<job>\d+)")


class Witness:
    """Samples Slurm in its own thread while its context is open.

    Attributes
    ----------
    nodes : job -> sets of nodes on which it was observed
    licenses : job -> licenses that it was observed to hold
    overdrawn : violations: licenses beyond their total, nodes with two jobs of the partition
    samples : number of samples
    shares : per sample, node -> jobs of any partition that run on it
    """

    def __init__(self, cluster: Cluster, partition: str, interval: float = 0.4) -> None:
        self.cluster, self.partition, self.interval = cluster, partition, interval
        self.nodes: dict[str, set[frozenset[str]]] = {}
        self.licenses: dict[str, dict[str, int]] = {}
        self.overdrawn: list[str] = []
        self.samples = 0
        self.shares: list[dict[str, list[str]]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_stopped, daemon=True)

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample_until_stopped(self) -> None:
        while not self._stopped.wait(self.interval):
            with contextlib.suppress(RuntimeError):  # the controller is down because a fault test stopped it
                self.sample()

    def sample(self) -> None:
        """Take a sample."""
        users: dict[str, str] = {}
        jobs_on: dict[str, list[str]] = {}
        held: dict[str, int] = {}
        text = self.cluster.call("squeue", "-h", "-t", "RUNNING,COMPLETING", "-o", "%A;%P;%T;%N;%W")
        for line in text.splitlines():
            job, partition, state, nodes, licenses = line.split(";")
            names = frozenset(hostlist.expand(nodes))
            if state == "RUNNING":
                for node in names:
                    jobs_on.setdefault(node, []).append(job)
            if partition == self.partition and state == "RUNNING":
                self.nodes.setdefault(job, set()).add(names)
                for node in names:
                    if users.setdefault(node, job) != job:
                        self.overdrawn.append(f"{node}: jobs {users[node]} and {job}")
            counts = dict(part.split(":") for part in licenses.split(",") if ":" in part)
            self.licenses[job] = {name: int(count) for name, count in counts.items()}
            if state == "RUNNING":
                for name, count in self.licenses[job].items():
                    held[name] = held.get(name, 0) + count
        for line in self.cluster.call("scontrol", "-o", "show", "lic").splitlines():
            fields = dict(word.partition("=")[::2] for word in line.split())
            total = int(fields["Total"])
            if int(fields["Used"]) > total or held.get(fields["LicenseName"], 0) > total:
                self.overdrawn.append(f"{line}: {held.get(fields['LicenseName'])}")
        self.shares.append(jobs_on)
        self.samples += 1

    def allocations(self) -> dict[str, float]:
        """Return job -> time of its last allocation in the controller's log (s since 1970)."""
        times = {}
        for line in self.cluster.log.read_text().splitlines():
            match = _ALLOCATED.match(line)
            if match is not None:
                times[match["job"]] = datetime.fromisoformat(match["at"]).timestamp()
        return times


def wait_for(what: str, condition, seconds: float, interval: float = 0.5) -> None:
    """Wait until a condition holds; raises AssertionError after four times the usual seconds, scaled by the machine."""
    end = 4 * seconds * slowness()
    deadline = time.monotonic() + end
    while not condition():
        assert time.monotonic() < deadline, f"not within {end:.0f} s: {what}"
        time.sleep(interval)
