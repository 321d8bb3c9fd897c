"""What becomes of one simulated run: printed, or written to files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poolwise.cli.units import unit_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poolwise.engines.simulate import Result
    from poolwise.metrics import Measure
    from poolwise.model import Schedule


class EngineName(StrEnum):
    """Which engine runs."""

    AUTO = "auto"
    REFERENCE = "reference"
    COMPILED = "compiled"


@dataclass(frozen=True)
class OutputOptions:
    """What becomes of a run.

    Attributes
    ----------
    engine : which engine runs
    json : print one JSON object instead of a table
    schedule, timeline : files to write
    sample : sampling interval of the utilisation of processing units, ns
    """

    engine: EngineName
    json: bool
    schedule: Path | None
    timeline: Path | None
    sample: int | None


def measured(
    result: Result, asked: Sequence[Measure], output: OutputOptions, promises: tuple[str, ...]
) -> dict[str, Any] | None:
    """Print what a run came to, or return it if it is to be printed as JSON."""
    from dataclasses import replace

    from poolwise import api
    from poolwise.cli.console import note as say
    from poolwise.cli.console import warn
    from poolwise.cli.output import print_run

    run = api.measured(result.schedule, result.engine, result.wall_s, asked=asked, said=result.notes())
    tables = unit_tables(result.schedule, output.sample)
    for note in run.notes:
        if note not in result.notes():  # that was said while it ran
            warn(note)
    for promise in promises:
        say(promise)
    if output.json:
        return {**replace(run, notes=(*run.notes, *promises)).to_dict(), **tables}
    print_run(run)
    return None


def write_schedule(record: Schedule, path: Path) -> None:
    """Write a row for each job that ran, CSV or Parquet; the placement as `Schedule.placements` writes it."""
    from poolwise.cli.output import write_rows

    ids, submits = record.workload.id.tolist(), record.workload.submit.tolist()
    jobs, starts, ends, finished = record.job.tolist(), record.start.tolist(), record.end.tolist(), record.finished.tolist()
    placements = record.placements()
    order = sorted(range(record.n_run), key=lambda k: (jobs[k], starts[k]))
    rows = [[ids[jobs[k]], submits[jobs[k]], starts[k], ends[k], placements[k]] for k in order if finished[k]]
    write_rows(path, ["id", "submit_ns", "start_ns", "end_ns", "placement"], rows)
