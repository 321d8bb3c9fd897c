"""`poolwise forecast backtest`: measure the quality of forecasts on a log of finished jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise import catalog
from poolwise.cli.console import note, print_lines
from poolwise.cli.examples import command
from poolwise.cli.forecast import LogFormat, PolicyOptions, forecasts
from poolwise.cli.output import print_json, provenance
from poolwise.cli.shared_options import JsonOption, SeedOption
from poolwise.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    found = Backtest.of(target, workload, scheduler, BacktestSettings(instants=instants, samples=samples, seed=seed))
    found = replace(found, notes=(*workload.notes, *limits, *found.notes))
    counts = {"excluded": dict(workload.excluded), "repaired": dict(workload.repaired)}
    content = {"log": workload.name, "machine": target.name, "policy": name, **found.to_dict(), **counts}
    if json:
        print_json(content, provenance(seed, [catalog.resolve("traces", log)]), found.notes)
        return
    _print(content)
    for reason, count in (*content["excluded"].items(), *content["repaired"].items()):
        note(f"{count:,} rows: {reason}")
    for text in found.notes:
        note(text)


def _print(content: Mapping[str, Any]) -> None:

    def shown(name: str, percent: bool = False) -> str:
        value, interval = content[name], content["intervals_90"][name]
        if value is None:
            return "undefined"
        text = f"{100 * value:.0f} %" if percent else f"{value:.2f}"
        low, high = interval or (value, value)
        return f"{text} ({100 * low:.0f} to {100 * high:.0f} %)" if percent else f"{text} ({low:.2f} to {high:.2f})"

    print_lines(
        [
            f"{content['log']} on {content['machine']} under {content['policy']}: {content['jobs']:,} forecasts of waiting "
            f"jobs at {content['instants']} times; in parentheses, 90 % intervals over blocks of time",
            f"  pinball loss relative to `squeue --start`: {shown('pinball_ratio_plan')}",
            "  pinball loss relative to one simulation with mean run times, widened by past errors: "
            f"{shown('pinball_ratio_calibrated')}",
            f"  starts within the 80 % interval: {shown('coverage_80', percent=True)}",
            f"  Brier score of a start within the hour, relative to that simulation: {shown('brier_ratio_1h')}",
        ]
    )
