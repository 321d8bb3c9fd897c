"""Options and output of one simulated run, shared by the commands of `poolwise simulate`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.console import note
from poolwise.cli.output import print_run, write_rows
from poolwise.cli.panels import ADVANCED, OUTPUT
from poolwise.cli.shared_options import JsonOption
from poolwise.cli.units import unit_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poolwise.engines.simulate import Result
    from poolwise.files.component import Component
    from poolwise.metrics import Measure
    from poolwise.model import Schedule


class EngineName(StrEnum):
    """Simulation engines."""

    AUTO = "auto"
    REFERENCE = "reference"
    COMPILED = "compiled"


@dataclass(frozen=True)
class OutputOptions:
    """Options of every command that simulates one run: engine, metrics and files to write."""

    json: JsonOption = False
    schedule: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write one row per job (id, submit_ns, start_ns, ...): CSV or .parquet.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    timeline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the run as Chrome trace events (JSON) for Perfetto.", rich_help_panel=OUTPUT),
    ] = None
    metric: Annotated[
        list[str],
        typer.Option(
            metavar="NAME", help="Additional metric: FILE.py:NAME or MODULE:NAME; repeatable.", rich_help_panel=OUTPUT
        ),
    ] = field(default_factory=list)
    engine: Annotated[
        EngineName,
        typer.Option(help="Simulation engine; auto picks the fastest that supports the run.", rich_help_panel=ADVANCED),
    ] = EngineName.AUTO

    @property
    def files(self) -> list[Path]:
        """Files to write."""
        return [path for path in (self.schedule, self.timeline) if path is not None]

    def metrics(self) -> tuple[Component, ...]:
        """Return the additional metrics; paths are relative to the current folder."""
        from poolwise.files.component import Component

        return tuple(Component(name=name).in_folder("metrics", Path()) for name in self.metric)


def report_run(
    result: Result, measures: Sequence[Measure], json: bool, sample: int | None = None, promises: tuple[str, ...] = ()
) -> tuple[dict[str, Any], tuple[str, ...]] | None:
    """Print the metrics of a run; or return them, with notes, to be printed as JSON.

    Parameters
    ----------
    result, measures : the run, and the additional metrics
    json : return the result instead of printing it
    sample : sampling interval of the utilization of processing units, ns
    promises : notes on contracts that were tested before the run
    """
    from poolwise import api

    run = api.measured(result.schedule, result.engine, result.wall_s, asked=measures, said=result.notes())
    tables = unit_tables(result.schedule, sample)
    for text in run.notes:
        if text not in result.notes():  # these were printed during the run
            note(text)
    for text in promises:
        note(text)
    if json:
        return {**run.to_dict(), **tables}, (*run.notes, *promises)
    print_run(run)
    return None


def write_schedule(record: Schedule, path: Path) -> None:
    """Write one row per finished job, as CSV or Parquet; placements as `Schedule.placements` formats them."""
    ids, submits = record.workload.id.tolist(), record.workload.submit.tolist()
    jobs, starts, ends, finished = record.job.tolist(), record.start.tolist(), record.end.tolist(), record.finished.tolist()
    placements = record.placements()
    order = sorted(range(record.n_run), key=lambda k: (jobs[k], starts[k]))
    rows = [[ids[jobs[k]], submits[jobs[k]], starts[k], ends[k], placements[k]] for k in order if finished[k]]
    write_rows(path, ["id", "submit_ns", "start_ns", "end_ns", "placement"], rows)
