"""Machines that consist of processors only."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.errors import InputError
from poolwise.model import Machine
from poolwise.registry import register


@register("machine_formats", "processors")
@dataclass(frozen=True)
class Processors:
    """Processors without memory, each a node of its own, as in most logs of parallel machines.

    Parameters
    ----------
    count
        Number of processors.
    """

    count: int

    def build(self) -> Machine:
        """Build the machine; raises InputError for fewer than one processor."""
        if self.count < 1:
            raise InputError(f"count must be at least 1, got {self.count}", field="count", remedy="give 1 or more")
        return Machine.flat(self.count)
