"""Passive profiles: slowdowns observed while the agent runs, in the columns that `poolwise profile fit` reads."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from poolwise.atomic_write import write_whole
from poolwise.errors import InputError
from poolwise.performance.csv_table import number

COLUMNS = ("workload", "remote", "frequency", "seconds", "windows", "source")
_BINS = 20  # number of bins of the remote share


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
    """Mean observed slowdowns in bins of the remote share.

    `seconds` is the time of work that takes 1 s with all memory local.
    """

    def __init__(self) -> None:
        self._means: dict[tuple[str, int, str], _Mean] = {}

    def add(self, workload: str, remote: float, slowdown: float, source: str) -> None:
        """Add the slowdown of a window; a remote share in the first half bin counts as 0."""
        bin_ = round(remote * _BINS) if remote >= 0.5 / _BINS else 0
        mean = self._means.setdefault((workload, bin_, source), _Mean())
        mean.add(remote if bin_ else 0.0, 1 + slowdown)

    def read(self, file: Path) -> None:
        """Resume from the file of an earlier run; raises InputError if the file has other columns."""
        if not file.exists():
            return
        with file.open(newline="", encoding="utf-8") as text:
            table = csv.DictReader(text)
            if tuple(table.fieldnames or ()) != COLUMNS:
                remedy = f"set 'measurements' to another file; its columns will be {', '.join(COLUMNS)}"
                raise InputError("is not a file of passive measurements", file=file, remedy=remedy)
            for row in table:
                remote, seconds, windows = (
                    number(row[name], file, table.line_num, name) for name in ("remote", "seconds", "windows")
                )
                self._means[row["workload"], round(remote * _BINS), row["source"]] = _Mean(remote, seconds, int(windows))

    def write(self, file: Path) -> None:
        """Write the file atomically."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(COLUMNS)
        for (workload, _, source), mean in sorted(self._means.items()):
            table.writerow([workload, f"{mean.remote:.6g}", 1, f"{mean.seconds:.6g}", mean.windows, source])
        write_whole(file, text.getvalue().encode())
