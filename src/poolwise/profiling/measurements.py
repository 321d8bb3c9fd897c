"""CSV file of measurements: one row per run, with the columns that `poolwise profile fit` reads first."""

from __future__ import annotations

import csv
import io

from poolwise.profiling.experiment import MIB, LimitedRuns

COLUMNS = (
    "workload",
    "remote",
    "frequency",
    "seconds",
    "peak_mib",
    "working_set_mib",
    "swapped_mib",
    "faults",
    "major_faults",
    "refaults",
    "cpu_s",
    "wall_s",
)


def to_rows(measured: LimitedRuns) -> list[list[object]]:
    """Return the rows; `seconds` uses the plan's clock, and `frequency` is the processor share (1 if unlimited)."""
    return [
        [
            measured.plan.workload,
            f"{one.remote:.6g}",
            f"{1.0 if one.cpu is None else one.cpu:.6g}",
            f"{one.seconds(measured.plan.clock):.6g}",
            f"{measured.peak / MIB:.1f}",
            f"{one.run.peak / MIB:.1f}",
            f"{one.run.swapped / MIB:.1f}",
            one.run.use.faults,
            one.run.use.major_faults,
            one.run.use.refaults,
            f"{one.seconds('cpu'):.6g}",
            f"{one.seconds('wall'):.6g}",
        ]
        for one in measured.runs
    ]


def to_csv(measured: LimitedRuns) -> str:
    """Return the content of the file."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerows([COLUMNS, *to_rows(measured)])
    return text.getvalue()
