"""Options and output of one simulated run, shared by the commands of `poolwise simulate`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.output import show_answer, write_provenance, write_rows
from poolwise.cli.panels import ADVANCED, OUTPUT
from poolwise.cli.shared_options import JsonOption
from poolwise.quantities import US

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from poolwise.engines.simulate import Result
    from poolwise.files.component import Component
    from poolwise.interfaces import Scheduler
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
    all: Annotated[bool, typer.Option("--all", help="Print every metric, not only the main ones.", rich_help_panel=OUTPUT)] = (
        False
    )
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
    result: Result,
    scheduler: Scheduler,
    measures: Sequence[Measure],
    output: OutputOptions,
    source: Callable[[Path], Mapping[str, Any]],
    notes: Sequence[str] = (),
    sample: int | None = None,
    warm_up: int = 0,
) -> None:
    """Write the files of a run and print its metrics.

    Parameters
    ----------
    result, scheduler, measures : the run, its scheduler, and the additional metrics
    output : output options
    source : function that returns the provenance of a result for a file in a folder
    notes : notes in addition to those of the run
    sample : sampling interval of the utilization of processing units, ns
    warm_up : number of first jobs that are not measured
    """
    from poolwise.simulation import measured

    schedule, remarks = result.schedule, (*result.notes(), *notes)
    run = measured(
        schedule, result.engine, result.wall_s, measures=measures, remarks=remarks, scheduler=scheduler, warm_up=warm_up
    )
    if output.schedule is not None:
        write_schedule(schedule, output.schedule)
        write_provenance(output.schedule, source(output.schedule.parent))
    if output.timeline is not None:
        from poolwise.report.timeline import write_timeline  # drawing is slow to import

        write_timeline(schedule, output.timeline)
        write_provenance(output.timeline, source(output.timeline.parent))
    answer = run.answer(every_metric=output.all)
    show_answer(
        answer, {**answer.content, **_unit_tables(schedule, sample)} if output.json else None, source(Path()), more=None
    )


def write_schedule(record: Schedule, path: Path) -> None:
    """Write one row per finished job, as CSV or Parquet, with placements in the format of `Schedule.placements`."""
    ids, submits = record.workload.id.tolist(), record.workload.submit.tolist()
    jobs, starts, ends, finished = record.job.tolist(), record.start.tolist(), record.end.tolist(), record.finished.tolist()
    placements = record.placements()
    order = sorted(range(record.n_run), key=lambda k: (jobs[k], starts[k]))
    rows = [[ids[jobs[k]], submits[jobs[k]], starts[k], ends[k], placements[k]] for k in order if finished[k]]
    write_rows(path, ["id", "submit_ns", "start_ns", "end_ns", "placement"], rows)


def _unit_tables(schedule: Schedule, sample: int | None) -> dict[str, Any]:
    """Return the JSON keys of processing units: "units", and "series" with one value per `sample` ns."""
    from poolwise.metrics import Outcomes, Window
    from poolwise.metrics.unit_use import unit_series, unit_use, units_of

    machine = schedule.machine
    if not len(units_of(machine)):
        return {}
    window = Window.whole(Outcomes.of(schedule))
    use = unit_use(schedule, window)
    content: dict[str, Any] = {
        "units": [
            {
                "unit": machine.owners[unit],
                "type": kind,
                "x": int(machine.position[unit, 0]),
                "y": int(machine.position[unit, 1]),
                "utilization": None if share != share else share,
            }
            for unit, kind, share in zip(use.unit.tolist(), use.type, use.utilization.tolist(), strict=True)
        ]
    }
    if sample is not None:
        series = unit_series(schedule, window, sample)
        content["series"] = {
            "interval_us": sample / US,
            "begin_us": (series.begin / US).tolist(),
            "overall": series.overall.tolist(),
            "by_type": {name: column.tolist() for name, column in series.by_type.items()},
        }
    return content
