"""`poolwise simulate` of a folder that `poolwise snapshot` wrote: a cluster as it was, and what another scheduler would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poolwise.cli.run_options import RunOptions
from poolwise.cli.run_output import OutputOptions, measured, write_schedule

if TYPE_CHECKING:
    from pathlib import Path

    from poolwise.files.component import Component
    from poolwise.interfaces import Scheduler
    from poolwise.model import Machine


def simulate_state(
    folder: Path, options: RunOptions, unsaid: str, output: OutputOptions, metrics: tuple[Component, ...]
) -> None:
    """Go on from a state: what runs goes on, what waits is started by the scheduler that is named, or that the state names."""
    from poolwise import api
    from poolwise.atomic_write import check_writable
    from poolwise.cli.console import note as say
    from poolwise.cli.output import print_json, provenance, write_provenance
    from poolwise.engines import simulate
    from poolwise.engines.from_state import state_run
    from poolwise.errors import InputError
    from poolwise.files.state import read_state
    from poolwise.units import parse

    if options != RunOptions(options.trace, scheduler=options.scheduler, seed=options.seed) or output.sample is not None:
        remedy = "leave out all but --scheduler, --unsaid, --seed, --engine, --metric and what is written"
        raise InputError("a state has its machine and its jobs", file=folder, remedy=remedy)
    try:
        length = parse(unsaid, "time")
    except ValueError as error:
        raise InputError(str(error), field="--unsaid", remedy="such as 1h") from None
    written = [path for path in (output.schedule, output.timeline) if path is not None]
    for path in written:
        check_writable(path)
    state = read_state(folder)
    found, name = state_run(state, length), options.scheduler or state.scheduler
    scheduler, name = _scheduler(name, state.machine)
    result = simulate(
        state.machine,
        found.workload,
        scheduler,
        truth=api.default_model(state.machine, options.seed),
        seed=options.seed,
        engine=output.engine.value,
        initial=found.initial,
    )
    said = (
        f"jobs that do not say how long they run: {found.unsaid:,}; each is taken to run {unsaid} (--unsaid)"
        if found.unsaid
        else "",
        f"jobs that have run for longer than they asked for: {found.overdue:,}; each is taken to end in a second"
        if found.overdue
        else "",
    )
    notes = tuple(sentence for sentence in said if sentence)
    content = measured(result, [choice.make("metrics") for choice in metrics], output, ())
    for sentence in notes:
        say(sentence)
    source = {**provenance(options.seed, sorted(folder.iterdir())), "scheduler": name, "engine": output.engine.value}
    if output.schedule is not None:
        write_schedule(result.schedule, output.schedule)
    if output.timeline is not None:
        from poolwise.report.timeline import write_timeline  # drawing is slow to import

        write_timeline(result.schedule, output.timeline)
    for path in written:
        write_provenance(path, source)
    if content is not None:
        print_json({**content, "notes": [*content["notes"], *notes], "provenance": source})


def _scheduler(name: str, machine: Machine) -> tuple[Scheduler, str]:
    """The scheduler of a name, else first come, first served with EASY; and what it is called."""
    from poolwise import api
    from poolwise.cli.live import named_scheduler

    if name:
        return named_scheduler(name), name
    placement = "racks" if "nodes" in machine.resources else "first_fit"
    return api.list_scheduler("fcfs", "easy", placement), f"fcfs with easy and {placement}"
