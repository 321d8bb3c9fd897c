"""Rules that policies and models may state about themselves, as plain data, so that compiled engines can follow them.

A subclass inherits a rule unless it overrides a method of the class that states it (`interfaces.user_class.rule_of`).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from poolwise.arrays import FloatArray
from poolwise.quantities import NEVER
from poolwise.short_repr import short_repr

HeadScope = Literal["partition", "machine"]
"""Jobs that wait behind a job that does not fit: jobs that compete for the nodes of its partitions, or all jobs."""

PoolScope = Literal["rack", "system"]
"""Pools that a node may use: only the pool of its own rack, or any pool."""

RackSpread = Literal["worst", "mean", "paper"]
"""How the near share of a job's remote memory is computed on several racks; see `FixedSlowdown`."""


class PassTimes(NamedTuple):
    """Times (ns) and limits of a backfill that runs at intervals, like Slurm's.

    Attributes
    ----------
    begun, interval : time of one backfill pass, and the time between two passes
    looked, every : the same for passes of the main scheduler; `every` is 0 if it runs at each event
    depth : number of jobs that a backfill pass tests
    window, resolution : planning horizon and time resolution of the reservations
    considered : number of jobs that a pass of the main scheduler considers, `NEVER` for all
    full_pass : time between two passes of the main scheduler that consider all jobs; 0 for none
    busy_nodes : whether reservations prefer nodes in use
    groups : pairs (attributes, limit): a backfill pass tests at most that many jobs with equal values of these attributes
    least_priority : priority below which a job gets no reservation and blocks no other jobs; -inf for no such limit
    reserved_jobs : number of jobs of each partition for which a backfill pass makes reservations, 0 for all
    groups_ends : whether a backfill pass groups the ends of runs instead of trying a job after each end

    Examples
    --------
    >>> from poolwise.interfaces import PassTimes
    >>> PassTimes(0, 30 * 10**9, 0, 0, 500, 86_400 * 10**9, 60 * 10**9).depth
    500
    """

    begun: int
    interval: int
    looked: int
    every: int
    depth: int
    window: int
    resolution: int
    considered: int = NEVER
    full_pass: int = 0
    busy_nodes: bool = False
    groups: tuple[tuple[tuple[str, ...], int], ...] = ()
    least_priority: float = -math.inf
    reserved_jobs: int = 0
    groups_ends: bool = True


class BackfillRule(NamedTuple):
    """Rule of a backfill, complete enough that compiled engines choose the same starts.

    Attributes
    ----------
    reserves : jobs with a reservation: "none" (the first job that does not fit blocks the rest), "head" (that first job; a
        job that would delay it does not start; EASY), "all" (all waiting jobs; conservative) or "tested" (the jobs that each
        backfill pass tests; see `policies.SlurmBackfill`)
    extra : whether a job that ends after the head's reservation begins may start if it leaves the head room
    counts_pools : whether the head's reservation counts free memory in pools, not only nodes
    keeps : whether the reservations of all jobs are kept from pass to pass and only move forward; if not, each pass makes new
        ones
    times : times of the passes, for "tested"
    heads : for "none" and "head", the jobs that a job which does not fit blocks as their head: those of its "partition", or all
        jobs of the "machine"

    Examples
    --------
    >>> from poolwise.interfaces import BackfillRule
    >>> BackfillRule("head", extra=False).counts_pools
    True
    """

    reserves: Literal["none", "head", "all", "tested"]
    extra: bool = True
    counts_pools: bool = True
    keeps: bool = False
    times: PassTimes | None = None
    heads: HeadScope = "machine"


class RackRule(NamedTuple):
    """Rule of a placement that is equivalent to `policies.RackPlacement`.

    Attributes
    ----------
    pools : pools that a node may use: that of its "rack", or all pools of the "system"

    Examples
    --------
    >>> from poolwise.interfaces import RackRule
    >>> RackRule("system").pools
    'system'
    """

    pools: PoolScope = "rack"


class NodeRule(NamedTuple):
    """Rule of a placement on shared nodes that is equivalent to one in `policies.placement.nodes`.

    Attributes
    ----------
    prefers : order of the nodes that hold a part of a job: "first" (by number), "fullest" (fewest free cores), "emptiest",
        "packed" (few racks), or, as Slurm does, "tree" (few racks) or "consecutive" (consecutive numbers)
    weighs_gpus : whether the backfill `slurm` prefers nodes that it has tested for jobs with GPUs; unsupported by kernels

    Examples
    --------
    >>> from poolwise.interfaces import NodeRule
    >>> NodeRule("fullest").prefers
    'fullest'
    """

    prefers: Literal["first", "fullest", "emptiest", "packed", "tree", "consecutive"]
    weighs_gpus: bool = False


class FixedSlowdown(NamedTuple):
    """Slowdowns of some jobs that do not depend on neighbors: the rule of a performance model for compiled engines.

    If a share s of a job's remote memory is in the pools of its own racks, its slowdown is (s * near + (1 - s) * far) * weight.
    It is near * weight if s is 1 or the job has no remote memory. The model adds neither setup nor fetching.

    Attributes
    ----------
    near, far : (k,) slowdowns above -1
    weight : (k,) numbers, at least 0
    spread : s of a job on several racks: that of its "worst" rack, the "mean" over its memory, or ("paper") 0 as soon as any
        of its memory is in another rack
    per_part : on shared nodes, near and far are the slowdowns of a part whose memory is all remote, in a pool of its rack or of
        the machine. A part with only a share of its memory there is slowed down by that share of near or far, and
        `spread` determines the slowdown of the job. The weights are ignored

    Examples
    --------
    >>> import numpy as np
    >>> from poolwise.interfaces import FixedSlowdown
    >>> FixedSlowdown(near=np.array([0.1]), far=np.array([0.3]), weight=np.array([1.0])).spread
    'worst'
    """

    near: FloatArray
    far: FloatArray
    weight: FloatArray
    spread: RackSpread = "worst"
    per_part: bool = False

    def __repr__(self) -> str:
        return short_repr(self)
