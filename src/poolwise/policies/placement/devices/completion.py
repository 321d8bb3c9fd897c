"""Interface of placement policies that complete a placement whose node and devices a flow has chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from poolwise.arrays import IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, Machine, Placement, Refusal, Snapshot


@runtime_checkable
class CompletionPolicy(PlacementPolicy, Protocol):
    """Placement policy that can complete a placement whose node and devices are given."""

    def whole_devices(self, machine: Machine) -> Mapping[str, IntArray]:
        """Return device type -> (n,) owners, ascending, of the devices that jobs request by type and use exclusively.

        Raises InputError if the policy does not support the machine.
        """
        ...

    def least(self, memory: IntArray) -> IntArray:
        """Return the MiB that must be in the node, (n,), of (n,) MiB of memory."""
        ...

    def place_at(self, job: Job, node: int, devices: tuple[int, ...], snapshot: Snapshot) -> Placement | Refusal:
        """Place a job on a given node with given devices, along with everything else it needs."""
        ...
