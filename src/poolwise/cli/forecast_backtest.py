"""`poolwise forecast backtest`: measure the quality of forecasts on a log of finished jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poolwise import catalog
from poolwise.cli.examples import command
from poolwise.cli.forecast import LogFormat, PolicyOptions, forecasts
from poolwise.cli.output import provenance, show_answer
from poolwise.cli.shared_options import JsonOption, SeedOption
from poolwise.errors import InputError
from poolwise.quantities import format_count


@command(forecasts, "poolwise forecast backtest catalog:cerit-2013.swf.gz --processors 1536 --order fcfs")
def backtest(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Log of finished jobs, or catalog:NAME.")],
    policy: PolicyOptions,
    log_format: LogFormat,
    machine: Annotated[
        str | None, typer.Option(metavar="MACHINE", help="MACHINE.toml, or the name of a shipped machine.")
    ] = None,
    processors: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=2**40, help="Use N processors without memory instead.")
    ] = None,
    instants: Annotated[int, typer.Option(min=5, help="Number of forecast times.")] = 60,
    samples: Annotated[int, typer.Option(min=2, help="Number of sampled futures.")] = 60,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Measure the quality of forecasts on a log."""
    from dataclasses import replace

    from poolwise.forecasting.backtest import Backtest, BacktestSettings
    from poolwise.forecasting.known_state import with_limits
    from poolwise.model import Machine
    from poolwise.studies import load_machine

    if (machine is None) == (processors is None):
        remedy = "--machine MACHINE.toml, or --processors N"
        raise InputError("give either --machine or --processors", field="machine", remedy=remedy)
    target = Machine.flat(processors) if processors is not None else load_machine(catalog.machine(str(machine)))
    workload, limits = with_limits(log_format.read(log, target))
    scheduler, name = policy.make(target)
    measured = Backtest.of(workload, target, scheduler, BacktestSettings(instants=instants, samples=samples, seed=seed))
    counts = {"excluded": dict(workload.excluded), "repaired": dict(workload.repaired)}
    rows = [f"{format_count(count, 'row')}: {reason}" for kind in counts.values() for reason, count in kind.items()]
    answer = replace(measured, notes=(*rows, *workload.notes, *limits, *measured.notes)).answer(name)
    content = {**answer.content, **counts} if json else None
    show_answer(answer, content, provenance(seed, [catalog.resolve("traces", log)]))
