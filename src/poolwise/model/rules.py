"""What parts of a run may state of themselves, as plain data, so that fast engines do the same without asking them.

A statement speaks for its own class alone (`interfaces.rule_of`): a subclass may do another thing, and makes its own or none.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from poolwise.arrays import FloatArray

PoolScope = Literal["rack", "system"]
"""Pools that a node may use: that of its own rack, or any."""

RackSpread = Literal["worst", "mean", "paper"]
"""What counts as the near share of a job's remote memory on several racks: see `FixedSlowdown`."""


class BackfillRule(NamedTuple):
    """What a fast engine has to know of a backfill to choose the same starts.

    Attributes
    ----------
    reserves : who has a reservation: "nobody" (the first job that does not fit blocks the rest), "head" (that first job, and
        what delays it does not start; EASY), "everyone" (all waiting jobs; conservative)
    extra : whether a job may start beside the head that ends after the head's reservation begins, but leaves it room
    counts_pools : whether the head's reservation counts what is free in memory pools, not only nodes
    keeps : whether everyone's reservations are kept from pass to pass and only move forward, or are made anew at each pass
    """

    reserves: Literal["nobody", "head", "everyone"]
    extra: bool = True
    counts_pools: bool = True
    keeps: bool = False


class RackRule(NamedTuple):
    """What a fast engine has to know of a placement that is that of `policies.placement.memory.racks`.

    Attributes
    ----------
    pools : which pools a node may use
    """

    pools: PoolScope = "rack"


class FixedSlowdown(NamedTuple):
    """Slowdowns that no neighbour changes, of some jobs: what a fast engine has to know of a performance model.

    Where a share s of a job's remote memory lies in the pools of its own racks, its slowdown is (s * near + (1 - s) * far) *
    weight, and near * weight where s is 1 or it has no remote memory. Nothing but its work takes time.

    Attributes
    ----------
    near, far : (k,) numbers above -1
    weight : (k,) numbers of at least 0
    spread : s of a job on several racks: that of its "worst" rack, the "mean" of its memory, or ("paper") 0 as soon as any
        of its memory lies elsewhere
    per_part : on nodes that jobs share, near and far are the slowdowns of a part all of whose memory is remote: a part that
        has a share of it in a pool of its rack (or of the machine: far) is slowed down by that share of them, and the job
        by `spread`; there are no weights
    """

    near: FloatArray
    far: FloatArray
    weight: FloatArray
    spread: RackSpread = "worst"
    per_part: bool = False
