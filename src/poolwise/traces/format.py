"""What a trace format is."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from poolwise.model import Machine, Workload


class TraceFormat(Protocol):
    """A format of files with jobs, and the options for reading it; a frozen dataclass whose fields are the options."""

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a trace as a workload for a machine (its nodes decide how many of them a job needs).

        Rows left out and rows changed are counted by reason in the workload. Raises InputError, with file, line and field,
        for what cannot be read.
        """
        ...

    def recognises(self, path: Path) -> bool:
        """Whether a file that exists looks like this format; never raises."""
        ...
