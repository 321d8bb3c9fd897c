"""Machines with partitions, QOS and windows, jobs for them, and an obvious judge of what may run where when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.model import Machine, Partition, QualityOfService, ReservedWindow, Workload
from poolwise.quantities import NEVER, SECOND
from tests.helpers.node_machines import machine

USERS = ("ada", "bob", "cay")


def restricted_machine(g: np.random.Generator) -> Machine:
    """Up to six nodes in two overlapping partitions, with up to two QOS and two windows."""
    n = int(g.integers(2, 7))
    sets = {name: g.random(n) < share for name, share in (("p", 0.8), ("q", 0.6), ("fast", 0.7))}
    sets["p"][0] = sets["q"][-1] = True
    on = machine(np.tile([4, 100], (n, 1)), np.arange(n) // 2, sets=sets)
    limits = {"max_time": int(g.choice([NEVER, 20 * SECOND])), "max_nodes": int(g.choice([NEVER, 2]))}
    partitions = (
        Partition("p", default=bool(g.random() < 0.5), tier=int(g.integers(1, 3)), **limits),
        Partition("q", tier=int(g.integers(1, 3))),
    )
    qos = (
        QualityOfService("normal", True, per_user=(("jobs", int(g.integers(1, 4))),) if g.random() < 0.7 else ()),
        QualityOfService("low", False, int(g.choice([NEVER, 15 * SECOND])), (("cores", 6),), (("nodes", 3),)),
    )
    windows = [_window(g, on, k) for k in range(int(g.integers(0, 3)))]
    return replace(on, partitions=partitions, qos=qos if g.random() < 0.7 else (), windows=tuple(windows))


def _window(g: np.random.Generator, on: Machine, number: int) -> ReservedWindow:
    start = int(g.integers(0, 60)) * SECOND
    users = frozenset(["ada"] if g.random() < 0.4 else [])
    return ReservedWindow(f"w{number}", start, start + int(g.integers(1, 30)) * SECOND, g.random(on.n_owner) < 0.6, users)


def restricted_jobs(g: np.random.Generator, jobs: int) -> Workload:
    """Jobs of three users that name partitions, features and QOS, or do not."""
    requested = g.integers(1, 25, jobs) * SECOND
    return Workload.of(
        g.integers(0, 50, jobs) * SECOND,
        np.maximum(SECOND, requested - g.integers(0, 3, jobs) * SECOND),
        requested=requested,
        requests={"cores": g.integers(1, 5, jobs), "nodes": g.integers(1, 4, jobs), "memory": g.integers(0, 60, jobs)},
        attributes={
            "user": g.choice(USERS, jobs),
            "partition": g.choice(["", "p", "q", "p,q"], jobs),
            "constraint": g.choice(["", "", "fast"], jobs),
            "qos": g.choice(["", "normal", "low"], jobs) if g.random() < 0.8 else np.full(jobs, ""),
        },
    )


class Judge:
    """Says of single jobs what they may do, as the words of the documentation say it: no column, no cache."""

    def __init__(self, jobs: Workload, on: Machine) -> None:
        self.on, self.jobs = on, jobs

    def text(self, name: str, job: int) -> str:
        return str(self.jobs.attributes[name][job])

    def partitions(self, job: int) -> list[Partition]:
        """The partitions that take a job, and whether it names any."""
        named = self.named(job)
        time, nodes = int(self.jobs.requested[job]), int(self.jobs.nodes[job])
        return [part for part in named if time <= part.max_time and nodes <= part.max_nodes]

    def named(self, job: int) -> list[Partition]:
        names = self.text("partition", job)
        return [part for part in self.on.partitions if (part.name in names.split(",") if names else part.default)]

    def may_use(self, job: int, owner: int) -> bool:
        feature = self.text("constraint", job)
        if feature and not self.on.node_sets[feature][owner]:
            return False
        return not self.named(job) or any(self.on.node_sets[part.name][owner] for part in self.partitions(job))

    def fits(self, job: int) -> bool:
        """Return whether a job may run on as many nodes as it requests (each of which is large enough)."""
        return sum(self.may_use(job, owner) for owner in range(self.on.n_owner)) >= int(self.jobs.nodes[job])

    def tier(self, job: int) -> int:
        return max([part.tier for part in self.partitions(job)], default=1)

    def qos(self, job: int) -> QualityOfService | None:
        names = self.text("qos", job)
        return next((qos for qos in self.on.qos if (qos.name == names if names else qos.default)), None)

    def amount(self, job: int, name: str) -> int:
        return {"jobs": 1, "nodes": int(self.jobs.nodes[job])}.get(
            name, int(self.jobs.nodes[job]) * int(self.jobs.request(name)[job])
        )

    def beside(self, job: int, running: list[int]) -> bool:
        """Return whether a job's QOS has room for it with the others running."""
        qos = self.qos(job)
        if qos is None:
            return True
        same = [other for other in running if self.qos(other) is qos]
        mine = [other for other in same if self.text("user", other) == self.text("user", job)]
        for limits, others in ((qos.per_user, mine), (qos.total, same)):
            for name, most in limits:
                if sum(self.amount(other, name) for other in [*others, job]) > most:
                    return False
        return True

    def never(self, job: int) -> bool:
        """Return whether a job may never run, even alone."""
        qos, outside = self.qos(job), bool(self.named(job)) and not self.partitions(job)
        return outside or (qos is not None and int(self.jobs.requested[job]) > qos.max_time) or not self.beside(job, [])

    def shut(self, job: int, owner: int, start: int) -> bool:
        """Return whether a job that starts then would run into a window there."""
        end = start + int(self.jobs.requested[job])
        return any(
            window.owners[owner] and window.start < end and start < window.end and self.text("user", job) not in window.users
            for window in self.on.windows
        )
