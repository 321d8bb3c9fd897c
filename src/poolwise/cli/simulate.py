"""`poolwise simulate`: one run of a log, or an earlier run again. `poolwise simulate LOG` is short for `simulate log LOG`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.atomic_write import check_writable
from poolwise.cli.app import app
from poolwise.cli.console import err
from poolwise.cli.default_group import DefaultGroup
from poolwise.cli.examples import TICKS, command, examples
from poolwise.cli.output import provenance
from poolwise.cli.run_options import LogOptions
from poolwise.cli.run_output import EngineName, OutputOptions, report_run
from poolwise.cli.shared_options import LogArgument, setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poolwise.files.component import Component
    from poolwise.studies.cells import Cell

EXAMPLES = (
    "poolwise simulate catalog:cerit-2013.swf.gz --machine cerit-racks",
    "poolwise simulate catalog:cerit-2013.swf.gz --machine cerit-racks --order fm",
    f"poolwise simulate catalog:example-ticks.csv --machine perlmutter-like {TICKS}",
)
simulations = typer.Typer(
    cls=DefaultGroup,
    help="Simulate one run and print its metrics.\n\nWithout a command, simulate the job log LOG.",
    epilog=examples(*EXAMPLES),
    no_args_is_help=True,
    subcommand_metavar="| COMMAND [ARGS]...",
)


def simulate_cell(
    cell: Cell, files: Sequence[Path], output: OutputOptions, metrics: tuple[Component, ...], sample: int | None = None
) -> None:
    """Simulate a cell whose description was read from files; print its metrics and write the requested files."""
    from poolwise.cli.progress import ConsoleWatch
    from poolwise.engines import simulate
    from poolwise.engines.order_contract import check_order_contract
    from poolwise.studies.cell_simulation import check_warm_up
    from poolwise.studies.cells import workload_of
    from poolwise.studies.description import ConfiguredRun
    from poolwise.studies.slow_runs import slow_runs

    for path in output.files:
        check_writable(path)
    configured, measures = ConfiguredRun.of(cell), [choice.make("metrics") for choice in metrics]
    with ConsoleWatch(err, f"reading {Path(cell.workload.path).name}") as watch:
        if cell.warm_up:
            check_warm_up(cell, workload_of(cell))
        for slow in slow_runs([cell]) if output.engine is EngineName.AUTO else ():
            watch.explain(slow.text)
        promises = check_order_contract(workload_of(cell), cell.machine, configured.scheduler)
        result = simulate(
            workload_of(cell),
            cell.machine,
            configured.scheduler,
            model=configured.model,
            estimate=configured.estimate,
            seed=cell.seed,
            engine=output.engine.value,
            pass_per_event=cell.scheduler.pass_per_event,
            watch=watch,
        )

    def source(folder: Path) -> dict[str, Any]:
        return _source(cell, files, folder, output.engine, metrics)

    report_run(result, configured.scheduler, measures, output, source, promises, sample, cell.warm_up)


def _source(
    cell: Cell, files: Sequence[Path], folder: Path, engine: EngineName, metrics: tuple[Component, ...]
) -> dict[str, Any]:
    """Return the provenance of a result in a folder: version, command, the whole run, and the additional metrics."""
    from poolwise.studies.description import describe, describe_metrics

    additional = {"metrics": describe_metrics(metrics, folder)} if metrics else {}
    return {**provenance(cell.seed, files), **describe(cell, folder), "engine": engine.value, **additional}


@command(simulations, EXAMPLES[0].replace("simulate ", "simulate log "))
def log(log: LogArgument, options: LogOptions, output: OutputOptions) -> None:
    """Simulate a job log on a machine under one scheduler.

    `poolwise simulate LOG` is short for this command.
    """
    simulate_cell(options.cell(log), options.files(log), output, output.metrics())


@command(simulations, "poolwise simulate rerun fcfs.csv.provenance.json --set scheduler.order=sjf")
def rerun(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.provenance.json", help="Provenance file of an earlier `poolwise simulate`.")
    ],
    output: OutputOptions,
    set_: list[Any] = setting("Replace a value, such as workload.jobs=100; repeatable."),
) -> None:
    """Simulate an earlier run again, with the same or other settings."""
    from poolwise.cli.saved_run import read_recorded_run

    cell, metrics = read_recorded_run(file, set_)
    simulate_cell(cell, [file], output, tuple(dict.fromkeys((*metrics, *output.metrics()))))


app.add_typer(simulations, name="simulate")
