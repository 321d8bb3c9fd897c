"""Profiles in passing: the slowdowns that were seen while the agent worked, as the rows that `poolwise profile fit` takes."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from poolwise.atomic_write import write_whole
from poolwise.errors import InputError
from poolwise.performance.profiles import number

COLUMNS = ("workload", "remote", "frequency", "seconds", "windows", "source")
_BINS = 20
"""Shares of remote memory that are told apart."""


@dataclass
class _Mean:
    remote: float = 0.0
    seconds: float = 0.0
    windows: int = 0

    def add(self, remote: float, seconds: float) -> None:
        self.windows += 1
        self.remote += (remote - self.remote) / self.windows
        self.seconds += (seconds - self.seconds) / self.windows


class PassiveProfile:
    """Means of what was seen, in bins of remote memory: `seconds` for what takes 1 s with all memory local."""

    def __init__(self) -> None:
        self._means: dict[tuple[str, int, str], _Mean] = {}

    def add(self, workload: str, remote: float, slowdown: float, source: str) -> None:
        """Add what was seen in a window; a share of remote memory that rounds to nothing counts as none."""
        place = round(remote * _BINS) if remote >= 0.5 / _BINS else 0
        mean = self._means.setdefault((workload, place, source), _Mean())
        mean.add(remote if place else 0.0, 1 + slowdown)

    def read(self, file: Path) -> None:
        """Go on from a file of an earlier run; raises InputError for a file of something else."""
        if not file.exists():
            return
        with file.open(newline="", encoding="utf-8") as text:
            table = csv.DictReader(text)
            if tuple(table.fieldnames or ()) != COLUMNS:
                remedy = f"name another file as 'measurements'; its columns would be {', '.join(COLUMNS)}"
                raise InputError("is no file of measurements in passing", file=file, remedy=remedy)
            for row in table:
                remote, seconds, windows = (
                    number(row[name], file, table.line_num, name) for name in ("remote", "seconds", "windows")
                )
                self._means[row["workload"], round(remote * _BINS), row["source"]] = _Mean(remote, seconds, int(windows))

    def write(self, file: Path) -> None:
        """Write the file, whole."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(COLUMNS)
        for (workload, _, source), mean in sorted(self._means.items()):
            table.writerow([workload, f"{mean.remote:.6g}", 1, f"{mean.seconds:.6g}", mean.windows, source])
        write_whole(file, text.getvalue().encode())
