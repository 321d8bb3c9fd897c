"""In-memory Slurm for tests: executes scontrol commands, starts released jobs, and lets tests interfere."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from poolwise.live.slurm import place_mode, platform
from poolwise.live.slurm.parsing import ClusterListing, SlurmJob, SlurmNode, group_components, parse_licenses
from poolwise.quantities import HOUR, SECOND
from poolwise.slurm import hostlist

NODE = 65536
"""Memory of each node (MiB)."""


def make_job(name: str, **fields: object) -> SlurmJob:
    """Return a pending job of the partition "pools" that is not held."""
    base = SlurmJob(
        name, int(re.split(r"[_+]", name)[0]), "PENDING", "pools", 7, 1, 1, 1, HOUR, 10 * SECOND, None, (), frozenset(),
        frozenset(), {}, 100, "None", False, 0, "", "",
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


class FakeSlurm:
    """Two racks of four nodes with a pool of 100 GiB each.

    Attributes
    ----------
    jobs : pending and running jobs, by name
    down : drained nodes
    cpus : CPUs of each node
    ran : job -> nodes on which it was started
    marks : job -> administrator's comment
    stubborn : jobs that never start although they are released
    comments : job -> comment as Poolwise wrote it
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs: dict[str, SlurmJob] = {}
        self.down: set[str] = set()
        self.cpus = {f"n{k}": 16 for k in range(8)}
        self.ran: dict[str, tuple[str, ...]] = {}
        self.marks: dict[str, str] = {}
        self.stubborn: set[str] = set()
        self.comments: dict[str, str] = {}
        for module in (platform, place_mode):
            monkeypatch.setattr(module, "read_cluster", lambda _: self.read())
        for module in (platform, place_mode):
            monkeypatch.setattr(module, "run_client", self.call)
        monkeypatch.setattr(platform, "read_racks", lambda nodes: {name: f"rack{int(name[1:]) // 4}" for name in nodes})
        monkeypatch.setattr(place_mode, "read_jobs", lambda _: list(self.jobs.values()))
        monkeypatch.setattr(place_mode, "ScontrolSession", lambda: self)

    def read(self) -> ClusterListing:
        nodes = {name: SlurmNode(name, name not in self.down, cpus, NODE, ()) for name, cpus in self.cpus.items()}
        return ClusterListing(tuple(self.jobs.values()), nodes, {"pool_rack0": 100, "pool_rack1": 100, "matlab": 5})

    def call(self, *command: str) -> str:
        if command[:2] == ("scontrol", "update"):
            self.comments[command[2].removeprefix("JobId=")] = command[3].removeprefix("Comment=")
        elif command[0] == "scancel":
            self.jobs.pop(command[1], None)
        return ""

    def send(self, commands: list[str]) -> list[str]:
        return [self.execute(command) for command in commands]

    def close(self) -> None:
        return

    def execute(self, command: str) -> str:
        verb, _, rest = command.partition(" ")
        if verb == "show":
            return f"AdminComment={self.marks.get(rest.split()[1], '')}"
        fields = dict(word.partition("=")[::2] for word in rest.split()) if "=" in rest else {"JobId": rest}
        job = self.jobs.get(fields.pop("JobId"))
        if job is None:
            return "Invalid job id specified"
        if verb == "hold" and job.state == "PENDING":
            job = replace(job, priority=0, reason="JobHeldAdmin")
        elif verb == "release" and job.state == "PENDING":
            job = replace(job, priority=100, reason="None")
        elif verb == "update":
            self.marks[job.name] = fields.get("AdminComment", self.marks.get(job.name, ""))
            if "ReqNodeList" in fields:
                job = replace(job, required=frozenset(hostlist.expand(fields["ReqNodeList"])))
            if "Licenses" in fields:
                job = replace(job, licenses=parse_licenses(fields["Licenses"]))
        self.jobs[job.name] = job
        return ""

    def start_released(self) -> None:
        """Start pending jobs that are not held and whose nodes and licenses are free.

        Like Slurm, add nodes to the required ones if a job needs more.
        """
        for job in list(self.jobs.values()):
            busy = {node for other in self.jobs.values() for node in other.allocated}
            free = [name for name in self.cpus if name not in busy | self.down]
            if job.state != "PENDING" or job.held or job.name in self.stubborn:
                continue
            nodes = sorted(free, key=lambda node: node not in job.required)
            named = len(job.required.intersection(free))
            if len(free) < job.nodes or named < min(len(job.required), job.nodes) or self._lacks_licenses(job):
                self.jobs[job.name] = replace(job, reason="Resources")
                continue
            self.ran[job.name] = tuple(nodes[: job.nodes])
            self.jobs[job.name] = replace(job, state="RUNNING", allocated=self.ran[job.name], reason="None")

    def _lacks_licenses(self, job: SlurmJob) -> bool:
        return any(self.used(name) + count > 100 for name, count in job.licenses.items())

    def used(self, license: str) -> int:
        """Return the number of a license that running jobs hold."""
        return sum(job.licenses.get(license, 0) for job in self.jobs.values() if job.state == "RUNNING")

    def gangs(self) -> dict[str, tuple[SlurmJob, ...]]:
        return group_components(self.jobs.values())
