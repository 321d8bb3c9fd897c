"""Options that describe the simulation of a job log on nodes; they resolve into a cell like the sections of a study file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise import catalog
from poolwise.cli.panels import ADVANCED, LOG
from poolwise.cli.shared_options import OnlyOption, SeedOption, SettingsOption, StrictOption
from poolwise.errors import InputError, ManyErrors, flat

if TYPE_CHECKING:
    from poolwise.files.study import PerformanceSection
    from poolwise.model import Machine
    from poolwise.studies.cells import Cell


class ScopeChoice(StrEnum):
    """Pools that a node may use."""

    RACK = "rack"
    SYSTEM = "system"


def name_option(what: str, group: str, default: str) -> Any:
    """Return an option that takes the name of a component."""
    text = f"{what}: a name from `poolwise list {group}`, or FILE.py:NAME."
    return typer.Option(metavar="NAME", help=text, show_default=default)


@dataclass(frozen=True)
class LogOptions:
    """Machine, scheduler and format of a simulated log; an option that was not given is None, empty or False."""

    machine: Annotated[Path | None, typer.Option(metavar="MACHINE", help="MACHINE.toml, or the name of a shipped machine.")] = (
        None
    )
    processors: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=2**40, help="Simulate N processors without memory instead.")
    ] = None
    order: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Queue order: a name from `poolwise list orders`, FILE.py:NAME or MODULE:NAME.",
            show_default="fcfs",
        ),
    ] = None
    backfill: Annotated[str | None, name_option("Backfilling", "backfills", "easy")] = None
    placement: Annotated[str | None, name_option("Placement", "placements", "racks, or first_fit on shared nodes")] = None
    scope: Annotated[
        ScopeChoice | None,
        typer.Option(help="Pools that a node may use: those of its own rack, or all (system).", show_default="rack"),
    ] = None
    scheduler: Annotated[
        str | None, typer.Option(metavar="FILE", help="SCHEDULER.toml or catalog:NAME, instead of the four options above.")
    ] = None
    seed: SeedOption = 0
    format: Annotated[
        str, typer.Option(metavar="NAME", help="Log format: a name from `poolwise list formats`.", rich_help_panel=LOG)
    ] = "auto"
    map: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD=COLUMN:UNIT,...",
            help="Column mapping for any other table: submit=submit_time:10s, memory=mem_gb:GB.",
            rich_help_panel=LOG,
        ),
    ] = None
    only: OnlyOption = field(default_factory=list)
    strict: StrictOption = False
    closed_loop: Annotated[
        bool,
        typer.Option(
            "--closed-loop",
            help="Submit each job once its predecessor has ended and its user's think time has passed (SWF).",
            rich_help_panel=LOG,
        ),
    ] = False
    table: Annotated[
        list[str],
        typer.Option(
            metavar="KIND=FILE",
            help="Performance table (CSV) of a workload kind on shared devices; repeatable.",
            rich_help_panel=ADVANCED,
        ),
    ] = field(default_factory=list)
    set_: SettingsOption = field(default_factory=list)

    def cell(self, log: Path) -> Cell:
        """Resolve the run of a log; raises InputError for options that conflict, and for invalid files."""
        from copy import deepcopy

        from poolwise import simulation
        from poolwise.files.factory import UnsuitablePlacementError

        run = {
            "machine": _machine(self.machine, self.processors),
            "scheduler": self._scheduler(),
            "workload": self._workload(log),
            **({"performance": {"model": _sharing(self.table)}} if self.table else {}),
        }
        settings = with_placement(self.set_)
        try:
            cell = resolve_run(deepcopy(run), settings, self.seed)
        except InputError as error:
            mismatch = all(isinstance(single, UnsuitablePlacementError) for single in flat([error]))
            if not (mismatch and self._takes_default_placement(settings)):
                raise
            default: str = "first_fit"  # racks do not suit the machine
        else:
            default = simulation.default_placement_name(cell.machine)
            if default == "racks" or not self._takes_default_placement(settings):
                return cell
        parts = {name: part for name, part in self._scheduler_parts().items() if name != "scope"}
        return resolve_run({**run, "scheduler": {**parts, "placement": default}}, settings, self.seed)

    def _takes_default_placement(self, settings: dict[str, Any]) -> bool:
        """Return whether no option chooses the placement, directly or by a setting."""
        chosen = ("scheduler.kind", "scheduler.scope", "scheduler.placement")
        by_setting = any(key == "scheduler" or key.startswith(chosen) for key in settings)
        return not (self.scheduler or self.placement or self.scope or by_setting)

    def files(self, log: Path) -> list[Path]:
        """Return every file that the options name."""
        paths = [catalog.resolve("traces", log)]
        paths += [] if self.scheduler is None else [catalog.resolve("schedulers", self.scheduler)]
        paths += [catalog.resolve("sharing_tables", text.partition("=")[2]) for text in self.table]
        paths += [] if self.machine is None else [catalog.resolve("machines", str(_machine(self.machine, None)))]
        return paths

    @property
    def policy(self) -> str:
        """Short description of the scheduler."""
        if self.scheduler is not None:
            return self.scheduler
        return f"{self.order or 'fcfs'} {self.backfill or 'easy'} {(self.scope or ScopeChoice.RACK).value}"

    def _workload(self, log: Path) -> dict[str, Any]:
        settings = {"map": self.map, "strict": self.strict or None, "closed_loop": self.closed_loop or None}
        options = {name: value for name, value in settings.items() if value is not None}
        format = "columns" if self.map is not None and self.format == "auto" else self.format
        return {"trace": existing_trace(log), "format": format, "clock": "trace", "options": options, "only": dict(self.only)}

    def _scheduler(self) -> str | dict[str, Any]:
        """Return the scheduler file, or the section that the other options describe."""
        parts = {name: getattr(self, name) for name in ("order", "backfill", "placement", "scope")}
        if self.scheduler is not None:
            twice = next((f"--{name}" for name, value in parts.items() if value), None)
            if twice is not None:
                remedy = "give --scheduler FILE without the options that it replaces, or --order NAME alone"
                raise InputError(f"--scheduler and {twice} exclude each other", field="scheduler", remedy=remedy)
            return self.scheduler
        return self._scheduler_parts()

    def _scheduler_parts(self) -> dict[str, Any]:
        parts = {"order": self.order or "fcfs", "backfill": self.backfill or "easy", "placement": self.placement or "racks"}
        scope = {"scope": (self.scope or ScopeChoice.RACK).value} if parts["placement"] == "racks" else {}
        return {**parts, **scope}


def with_placement(placements: list[Any]) -> dict[str, Any]:
    """Return dotted path -> value for --set options; a KEY without dots is a setting of the placement."""
    return {key if "." in key else f"scheduler.placement.{key}": value for key, value in placements}


def existing_trace(path: Path) -> str:
    """Return a trace as a study file names it; raises InputError if the file does not exist."""
    file = catalog.resolve("traces", path)
    if not file.is_file():
        raise InputError("no such file", file=file, remedy="check the path")
    return str(path)


def resolve_run(sections: dict[str, Any], settings: dict[str, Any], seed: int) -> Cell:
    """Resolve the sections of one run into a cell; the performance model is the machine's default unless one is set.

    If an option is invalid, the error names no file.
    """
    run = {"version": 1, **sections, "measure": {"warm_up": 0, "baseline": False}, "seeds": {"values": [seed]}}
    cell = _resolve(run, settings)
    if "performance" in sections or any(key.startswith("performance.") for key in settings):
        return cell
    return replace(cell, performance=_default_performance(cell.machine))


def _resolve(run: dict[str, Any], settings: dict[str, Any]) -> Cell:
    from poolwise.files.document import Document
    from poolwise.studies.study import resolve

    document = Document(Path("command line"), run)
    try:
        cells = resolve(document, settings).cells
    except InputError as error:
        if error.file != document.file:
            raise
        errors = error.errors if isinstance(error, ManyErrors) else (error,)
        raise ManyErrors.of([type(e)(e.message, field=e.field, remedy=e.remedy) for e in errors]) from error
    if len(cells) != 1:
        raise InputError("a single run varies nothing", field="--set", remedy="write a study, and run it with `poolwise run`")
    return cells[0]


def _sharing(tables: list[str]) -> dict[str, Any]:
    """Return the model of devices shared as performance tables (KIND=FILE) describe."""
    pairs = [text.partition("=") for text in tables]
    for kind, equals, file in pairs:
        if not (kind and equals and file):
            raise InputError(f"'{kind}{equals}{file}' is not KIND=FILE", field="table", remedy="such as --table fio=fio.csv")
    return {"name": "nvme_sharing", "tables": {kind: file for kind, _, file in pairs}}


def _default_performance(machine: Machine) -> PerformanceSection:
    """Return the model that `simulation.default_model` chooses, by its name."""
    from poolwise import simulation
    from poolwise.files.component import Component
    from poolwise.files.study import PerformanceSection

    return PerformanceSection(model=Component(name=simulation.default_model_name(machine)))


def _machine(path: Path | None, processors: int | None) -> str | dict[str, Any]:
    """Return the machine that --machine or --processors names; raises InputError unless exactly one is given."""
    if (path is None) == (processors is None):
        raise InputError(
            "give either --machine or --processors", field="machine", remedy="--machine MACHINE.toml, or --processors N"
        )
    if processors is not None:
        return {"version": 1, "format": "processors", "count": processors}
    assert path is not None
    file = catalog.machine(path)
    return str(path) if file == path else f"{catalog.PREFIX}{file.stem}"
