"""One run, as the options of `poolwise simulate` say it: what runs on what, under which scheduler, how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolwise.interfaces import PerformanceModel, Scheduler
    from poolwise.model import Machine, Workload


class ScopeChoice(StrEnum):
    """Which pools a node may use."""

    RACK = "rack"
    SYSTEM = "system"


@dataclass(frozen=True, eq=False)
class OneRun:
    """What a simulation needs, and the files that it was read from; no estimate: the scheduler believes the truth."""

    machine: Machine
    workload: Workload
    scheduler: Scheduler
    truth: PerformanceModel
    estimate: PerformanceModel | None
    seed: int
    pass_per_event: bool
    files: list[Path]


def set_up(given: Mapping[str, Any]) -> OneRun:
    """Read what the options of `poolwise simulate` name; raises InputError for those that do not go together."""
    return _on_units(given) if given["format"] == "vinesim" else _on_nodes(given)


def _on_units(given: Mapping[str, Any]) -> OneRun:
    """Tasks on processing units."""
    from poolwise.cli.units import Inputs, placement_of
    from poolwise.schedulers.dispatch import Dispatch

    other = ("order", "backfill", "scope", "scheduler", "processors", "table")
    _refuse({name: given[name] for name in other}, "does not apply to --format vinesim")
    inputs = Inputs.found(**{name: given[name] for name in Inputs.__dataclass_fields__})
    scheduler, case = Dispatch(placement_of(given["placement"] or "high", given["set_"])), inputs.read()
    return OneRun(case.machine, case.workload, scheduler, case.model, case.estimate, inputs.seed, False, inputs.files())


def _on_nodes(given: Mapping[str, Any]) -> OneRun:
    """Jobs on nodes."""
    from poolwise import api, catalog, traces

    own = ("affinity", "prices", "power", "types", "inter_arrival", "contended", "sample", "set_")
    _refuse({name.strip("_").replace("_", "-"): given[name] for name in own}, "needs --format vinesim")
    sharing = _sharing(given["table"]) if given["table"] else None
    machine = chosen_machine(given["machine"], given["processors"])
    parts = (given[name] for name in ("scheduler", "order", "backfill", "placement", "scope"))
    scheduler, pass_per_event = _chosen_scheduler(*parts)
    trace = catalog.resolve("traces", given["trace"])
    workload = traces.read(trace, machine, format=given["format"])
    truth = sharing if sharing is not None else api.default_model(machine, given["seed"])
    files = [trace]
    files += [machine_file(given["machine"])] if given["machine"] is not None else []
    files += [_scheduler_file(given["scheduler"])] if given["scheduler"] else []
    files += [catalog.resolve("sharing_tables", text.partition("=")[2]) for text in given["table"]]
    return OneRun(machine, workload, scheduler, truth, None, given["seed"], pass_per_event, files)


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Raise InputError for the first of these options that was given."""
    from poolwise.errors import InputError

    for name, value in options.items():
        if value:
            raise InputError(f"--{name} {why}", field=f"--{name}", remedy="see `poolwise simulate --help`")


def _chosen_scheduler(
    file: str | None, order: str | None, backfill: str | None, placement: str | None, scope: ScopeChoice | None
) -> tuple[Scheduler, bool]:
    """Configure what --scheduler names, or what the other options say; whether a pass follows each event."""
    from poolwise import api
    from poolwise.errors import InputError
    from poolwise.files.configured import scheduler_of
    from poolwise.files.scheduler import load_scheduler

    given = {"order": order, "backfill": backfill, "placement": placement, "scope": scope}
    if (file is None) == (order is None) or (file is not None and any(given.values())):
        twice = next((f"--{name}" for name, value in given.items() if value and file), "")
        problem = f"--scheduler says what {twice} says" if twice else "give either --order or --scheduler"
        raise InputError(
            problem, field="scheduler", remedy="--order NAME, or --scheduler FILE without the options that it replaces"
        )
    if file is not None:
        section = load_scheduler(_scheduler_file(file))
        return scheduler_of(section), section.pass_per_event
    placement = placement or "racks"
    within = (scope or ScopeChoice.RACK).value if placement == "racks" else None
    return api.list_scheduler(order or "fcfs", backfill or "easy", placement, within), False


def _scheduler_file(reference: str) -> Path:
    from poolwise import catalog

    return catalog.resolve("schedulers", reference)


def _sharing(tables: list[str]) -> PerformanceModel:
    """Devices shared as performance tables say, KIND=FILE each."""
    from poolwise.errors import InputError
    from poolwise.performance.nvme_sharing import NvmeSharing
    from poolwise.performance.sharing_table import SharingTable

    pairs = [text.partition("=") for text in tables]
    for kind, equals, file in pairs:
        if not (kind and equals and file):
            raise InputError(f"'{kind}{equals}{file}' is not KIND=FILE", field="table", remedy="such as --table fio=fio.csv")
    return NvmeSharing({kind: SharingTable.read(file) for kind, _, file in pairs})


def chosen_machine(path: Path | None, processors: int | None) -> Machine:
    """Load the machine that --machine or --processors names; raises InputError unless it is one of them."""
    from poolwise.errors import InputError
    from poolwise.files.machine import load_machine
    from poolwise.model import Machine

    if (path is None) == (processors is None):
        raise InputError(
            "give either --machine or --processors", field="machine", remedy="--machine MACHINE.toml, or --processors N"
        )
    if processors is not None:
        return Machine.flat(processors)
    assert path is not None
    return load_machine(machine_file(path))


def machine_file(path: Path) -> Path:
    """Path of a machine file, or of a shipped machine by its name."""
    from poolwise import catalog

    if path.suffix or path.exists():
        return path
    return catalog.find("machines", str(path).removeprefix(catalog.PREFIX))
