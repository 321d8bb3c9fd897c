"""Placement: the resources that a job gets."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import Job, JobTable, Machine, Placement, Refusal, Snapshot
from poolwise.model.rules import NodeRule, RackRule


class PlacementPolicy(Protocol):
    """Interface of a placement policy: the resources that a job gets.

    Attributes
    ----------
    filters_nodes : whether it uses only nodes on which a job may run (`model.eligibility`)

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import PlacementPolicy, Refusal
    >>> class FirstRack(PlacementPolicy):
    ...     def place(self, job, snapshot):
    ...         nodes, free = job.nodes * job.tasks, snapshot.free_amount("nodes", rack=0)
    ...         if nodes > free:
    ...             return Refusal("the first rack is full", "nodes", nodes, free)
    ...         return snapshot.machine.placement({"rack0.nodes": {"nodes": nodes}})
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min", requests={"nodes": [3, 2]})
    >>> run = poolwise.simulate(workload, poolwise.Machine.of_racks(2, 4), placement=FirstRack(), engine="reference")
    >>> run.frame()["wait_s"].to_list()
    [0.0, 60.0]
    """

    filters_nodes: ClassVar[bool] = False
    """Whether the policy uses only nodes on which a job may run (`model.eligibility`)."""

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for wrong settings, and for problems known before a run, such as requests that nothing can meet."""
        return

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Find a placement of all tasks of a job in the free resources, or return which resource is short.

        It must not raise for any job: a job that requests a resource which the machine does not have is refused.

        Parameters
        ----------
        job
            The job, with those of its tasks that wait.
        snapshot
            The state; `snapshot.free` is (n_owner, n_resource).

        Returns
        -------
        A placement within the free amounts, or a refusal.
        """
        ...

    def prefilter(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Filter out jobs that `place` would surely refuse. It may let others through, but must not reject a job that fits.

        A job that passes must also pass with more free resources: backfills find the first state in which it passes by
        bisection.

        Parameters
        ----------
        jobs
            (k,) rows of the job table, or (1,) to try one job in many states.
        free
            (1 or k, n_owner, n_resource) free amounts; broadcasts against `jobs`.
        snapshot
            The state now.

        Returns
        -------
        (k,) bool. The default accepts all jobs.
        """
        return np.ones(np.broadcast_shapes((len(jobs),), (len(free),)), dtype=np.bool_)

    def signatures(self, machine: Machine, table: JobTable) -> IntArray | None:
        """Return the jobs' signatures, (n_job,), equal only if `place` treats jobs the same way in every state; None for none.

        A job keeps its signature when others arrive. Callers use `signatures_of`: a subclass may override only `place`.
        """
        return None

    def rule(self) -> RackRule | NodeRule | None:
        """Return the rule with which compiled engines make the same placements as `place`; None if no rule describes it."""
        return None


def states_signatures(policy: PlacementPolicy) -> bool:
    """Return whether a placement gives jobs signatures that describe the `place` of its own class."""
    stating, placing = (next(c for c in type(policy).__mro__ if name in vars(c)) for name in ("signatures", "place"))
    return stating is not PlacementPolicy and issubclass(stating, placing)


def signatures_of(policy: PlacementPolicy, machine: Machine, table: JobTable) -> IntArray | None:
    """Return the jobs' signatures, (n_job,), equal only if a placement treats jobs the same way; None if it has none."""
    return policy.signatures(machine, table) if states_signatures(policy) else None
