"""Looks at Slurm by itself, beside Poolwise: what runs where with which licences, sample by sample, and Slurm's own log."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from datetime import datetime

from poolwise.slurm import hostlist
from tests.live.slurm.cluster import Cluster

_ALLOCATED = re.compile(r"\[(?P<at>[^]]+)] sched(?:/backfill)?: (?:_start_job: Started|Allocate) JobId=(?P<job>\d+)")


class Witness:
    """Samples Slurm in a thread of its own for as long as its context lasts.

    Attributes
    ----------
    nodes : job -> sets of nodes on which it was seen
    licences : job -> licences that it was seen to hold
    overdrawn : what was found too much: licences beyond their total, nodes that two jobs of the partition had
    samples : times that it looked
    shares : node -> jobs that ran there, of each sample, whatever their partition
    """

    def __init__(self, cluster: Cluster, partition: str, interval: float = 0.4) -> None:
        self.cluster, self.partition, self.interval = cluster, partition, interval
        self.nodes: dict[str, set[frozenset[str]]] = {}
        self.licences: dict[str, dict[str, int]] = {}
        self.overdrawn: list[str] = []
        self.samples = 0
        self.shares: list[dict[str, list[str]]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._over.wait(self.interval):
            with contextlib.suppress(RuntimeError):  # the controller is down: a test of faults has stopped it
                self.look()

    def look(self) -> None:
        """Take a sample."""
        seen: dict[str, str] = {}
        beside: dict[str, list[str]] = {}
        held: dict[str, int] = {}
        text = self.cluster.ask("squeue", "-h", "-t", "RUNNING,COMPLETING", "-o", "%A;%P;%T;%N;%W")
        for line in text.splitlines():
            job, partition, state, nodes, licences = line.split(";")
            names = frozenset(hostlist.expand(nodes))
            if state == "RUNNING":
                for node in names:
                    beside.setdefault(node, []).append(job)
            if partition == self.partition and state == "RUNNING":
                self.nodes.setdefault(job, set()).add(names)
                for node in names:
                    if seen.setdefault(node, job) != job:
                        self.overdrawn.append(f"{node}: jobs {seen[node]} and {job}")
            bought = dict(part.split(":") for part in licences.split(",") if ":" in part)
            self.licences[job] = {name: int(count) for name, count in bought.items()}
            if state == "RUNNING":
                for name, count in self.licences[job].items():
                    held[name] = held.get(name, 0) + count
        for line in self.cluster.ask("scontrol", "-o", "show", "lic").splitlines():
            said = dict(word.partition("=")[::2] for word in line.split())
            total = int(said["Total"])
            if int(said["Used"]) > total or held.get(said["LicenseName"], 0) > total:
                self.overdrawn.append(f"{line}: {held.get(said['LicenseName'])}")
        self.shares.append(beside)
        self.samples += 1

    def allocations(self) -> dict[str, float]:
        """Job -> when the controller's log says that it got its nodes (s since 1970), for the last time."""
        found = {}
        for line in self.cluster.log.read_text().splitlines():
            told = _ALLOCATED.match(line)
            if told is not None:
                found[told["job"]] = datetime.fromisoformat(told["at"]).timestamp()
        return found


def wait_for(what: str, is_so, seconds: float, interval: float = 0.5) -> None:
    """Wait until something is so; raises AssertionError after some seconds."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"not within {seconds:g} s: {what}"
        time.sleep(interval)
