"""Layout of shared nodes and devices that several jobs may share, used by `shares`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.model import Machine
from poolwise.model.shared_nodes import SharedNodes, shared_nodes


@dataclass(frozen=True, eq=False)
class ShareLayout(SharedNodes):
    """Shared nodes and devices with a resource that jobs may take in shares.

    Attributes
    ----------
    largest : (n_resource,) largest amount of each on any node, which normalizes amounts
    share : column of the resource that is shared
    whole : largest amount of this resource on any device
    rank : (n_device,) position of each device when ordered by type, the most plentiful first, then by owner
    """

    largest: FloatArray
    share: int
    whole: int
    rank: IntArray
    _accepted: dict[str, BoolArray] = field(default_factory=dict)

    def accepted(self, spec: str) -> BoolArray:
        """Return a mask of the devices whose type a text accepts, (n_device,): types joined by "|", or all if it is empty."""
        mask = self._accepted.get(spec)
        if mask is None:
            wanted = {name.strip() for name in spec.split("|")} - {""}
            mask = self._accepted[spec] = np.isin(self.type, sorted(wanted)) if wanted else np.ones(len(self.type), np.bool_)
        return mask

    def on_nodes(self, values: IntArray | BoolArray) -> FloatArray:
        """Sum the values of devices, (n_device,), over those of each node, (n_node,)."""
        inside = self.home >= 0
        result = np.bincount(self.home[inside], weights=values[inside], minlength=len(self.nodes))
        return result.astype(np.float64)


@lru_cache(maxsize=8)
def share_layout(machine: Machine, resource: str) -> ShareLayout:
    """Read the layout of a machine. Raises InputError if it has no shared nodes."""
    every = shared_nodes(machine)
    shared, share = every.only(every.having(resource)), every.column(resource)
    _, of, many = np.unique(shared.type, return_inverse=True, return_counts=True)
    rank = np.empty(len(shared.devices), dtype=np.int64)
    rank[np.lexsort((shared.devices, shared.type, -many[of.reshape(-1)]))] = np.arange(len(rank))
    return ShareLayout(
        **vars(shared),
        largest=machine.capacity[np.ix_(shared.nodes, shared.columns)].max(axis=0).astype(np.float64),
        share=share,
        whole=int(machine.capacity[shared.devices, share].max(initial=0)) if share >= 0 else 0,
        rank=rank,
    )
