"""Interface of a trace format."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from poolwise.model import Machine, Workload


class TraceFormat(Protocol):
    """A file format of job traces with its options; a frozen dataclass whose fields are the options."""

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a trace as a workload for a machine, whose node sizes determine how many nodes a job needs.

        The workload counts excluded rows and repaired values by reason. Raises InputError, with file, line and field, if the
        trace cannot be read.
        """
        ...

    def recognizes(self, path: Path) -> bool:
        """Return whether an existing file looks like this format; never raise. The default implementation returns False."""
        return False
