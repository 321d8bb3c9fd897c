"""What a placement policy must be able to do for a flow to choose node and devices in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from poolwise.arrays import IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Job, Machine, Placement, Refusal, Snapshot


@runtime_checkable
class CompletionPolicy(PlacementPolicy, Protocol):
    """A placement policy that can add the rest where the node and the devices of a job are given."""

    def whole_devices(self, machine: Machine) -> Mapping[str, IntArray]:
        """Type of device -> (n,) owners, ascending, of the devices that jobs ask for by type and take whole.

        Raises InputError for a machine on which the policy does not work.
        """
        ...

    def least(self, memory: IntArray) -> IntArray:
        """(n,) MiB that must be in the node, of (n,) MiB."""
        ...

    def place_at(self, job: Job, node: int, devices: tuple[int, ...], snapshot: Snapshot) -> Placement | Refusal:
        """Place a job on a given node with given devices, and with whatever else it needs."""
        ...
