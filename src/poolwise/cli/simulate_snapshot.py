"""`poolwise simulate snapshot`: continue from the state of a cluster, under its scheduler or another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poolwise.atomic_write import check_writable
from poolwise.cli.examples import command
from poolwise.cli.output import provenance
from poolwise.cli.run_output import OutputOptions, report_run
from poolwise.cli.shared_options import SeedOption
from poolwise.cli.simulate import simulations
from poolwise.errors import InputError
from poolwise.quantities import parse


@command(simulations, "poolwise simulate snapshot now --scheduler catalog:fm-easy")
def snapshot(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that `poolwise snapshot` wrote.")],
    output: OutputOptions,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="SCHEDULER.toml or catalog:NAME; defaults to the scheduler of the snapshot."),
    ] = None,
    default_runtime: Annotated[str, typer.Option(metavar="TIME", help="Assumed run time of jobs without a time limit.")] = "1h",
    seed: SeedOption = 0,
) -> None:
    """Continue from a snapshot of a cluster.

    Running jobs keep their nodes; the scheduler starts the waiting jobs.
    """
    from poolwise import simulation
    from poolwise.engines import simulate
    from poolwise.engines.from_state import state_run
    from poolwise.files.state import read_state

    try:
        length = parse(default_runtime, "time")
    except ValueError as error:
        raise InputError(str(error), field="--default-runtime", remedy="such as 1h") from None
    for path in output.files:
        check_writable(path)
    state = read_state(folder)
    run = state_run(state, length)
    policy, name = simulation.choose_scheduler(state.machine, scheduler, known=state.scheduler)
    metrics = output.metrics()
    result = simulate(
        run.workload,
        state.machine,
        policy,
        model=simulation.default_model(state.machine, seed),
        seed=seed,
        engine=output.engine.value,
        initial=run.initial,
    )
    notes = []
    if run.without_limit:
        notes.append(
            f"jobs without a time limit: {run.without_limit:,}, each assumed to run {default_runtime} (--default-runtime)"
        )
    if run.overdue:
        notes.append(f"jobs that have exceeded their time limit: {run.overdue:,}, each assumed to end within a second")
    inputs = sorted(path for path in folder.iterdir() if path.is_file())
    source = {**provenance(seed, inputs), "scheduler": name, "engine": output.engine.value}
    report_run(result, policy, [choice.make("metrics") for choice in metrics], output, lambda _: source, notes)
