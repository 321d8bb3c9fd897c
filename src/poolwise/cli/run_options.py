"""One run, as the options of `poolwise simulate` say it: sections of a study file, resolved into a cell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolwise.files.study import PerformanceSection
    from poolwise.model import Machine
    from poolwise.studies.cells import Cell

VINESIM = "vinesim"


class ScopeChoice(StrEnum):
    """Which pools a node may use."""

    RACK = "rack"
    SYSTEM = "system"


@dataclass(frozen=True)
class RunOptions:
    """The options of `poolwise simulate` that say what runs on what; None, empty or False for those that were not given."""

    trace: Path | None
    machine: Path | None = None
    processors: int | None = None
    order: str | None = None
    backfill: str | None = None
    placement: str | None = None
    scope: ScopeChoice | None = None
    scheduler: str | None = None
    format: str = "auto"
    map: str | None = None
    strict: bool = False
    closed_loop: bool = False
    seed: int = 0
    table: tuple[str, ...] = ()
    affinity: Path | None = None
    affinity_kind: str = "absolute"
    prices: Path | None = None
    power: Path | None = None
    types: Path | None = None
    inter_arrival: str | None = None
    contended: bool = False
    set_: tuple[str, ...] = ()

    def cell(self) -> Cell:
        """Resolve the run; raises InputError for options that do not go together, and for what the files say."""
        from dataclasses import replace

        tables = self._units() if self.format == VINESIM else self._nodes()
        run = {"version": 1, **tables, "measure": {"warm_up": 0, "baseline": False}, "seeds": {"values": [self.seed]}}
        cell = resolved(run, self._settings())
        if "performance" in tables or any(key.startswith("performance.") for key in self._settings()):
            return cell
        return replace(cell, performance=_default_performance(cell.machine))

    def files(self) -> list[Path]:
        """Every file that the options name."""
        from poolwise import catalog

        kinds = {
            "trace": "traces",
            "scheduler": "schedulers",
            **dict.fromkeys(("affinity", "prices", "power", "types"), "affinities"),
        }
        found = [catalog.resolve(kind, given) for name, kind in kinds.items() if (given := getattr(self, name)) is not None]
        found += [catalog.resolve("sharing_tables", text.partition("=")[2]) for text in self.table]
        if self.machine is None:
            return found
        if self.format == VINESIM:
            return [*found, catalog.resolve("deployments", self.machine)]
        return [*found, catalog.resolve("machines", str(_machine(self.machine, None)))]

    def _settings(self) -> dict[str, Any]:
        """Dotted path -> value of --set; a bare KEY is one of the placement, as it has always been with --format vinesim."""
        from poolwise.studies.study import parse_setting

        given = dict(parse_setting(text) for text in self.set_)
        return {key if "." in key else f"scheduler.placement.{key}": value for key, value in given.items()}

    def _nodes(self) -> dict[str, Any]:
        """Jobs on nodes, of a machine file or of processors."""
        own = ("affinity", "prices", "power", "types", "inter_arrival", "contended")
        _refuse({name: getattr(self, name) for name in own}, "needs --format vinesim")
        performance = {"performance": {"model": _sharing(self.table)}} if self.table else {}
        return {
            "machine": _machine(self.machine, self.processors),
            "scheduler": self._scheduler(),
            "workload": self._workload(),
            **performance,
        }

    def _workload(self) -> dict[str, Any]:
        given = {"map": self.map, "strict": self.strict or None, "closed_loop": self.closed_loop or None}
        options = {name: value for name, value in given.items() if value is not None}
        format = "columns" if self.map is not None and self.format == "auto" else self.format
        return {"trace": self._trace(), "format": format, "clock": "trace", "options": options}

    def _units(self) -> dict[str, Any]:
        """Tasks on processing units, from the files of VineSim."""
        other = ("order", "backfill", "scope", "scheduler", "processors", "table", "map", "strict", "closed_loop")
        _refuse({name: getattr(self, name) for name in other}, "does not apply to --format vinesim")
        machine = self._deployment()
        options: dict[str, Any] = {} if self.inter_arrival is None else {"inter_arrival": self.inter_arrival}
        options |= {} if self.types is None else {"types": str(self.types)}
        alone = {"name": "combined", "models": ["affinity", "transfer"]}
        shared = {"name": "combined", "models": ["affinity", "network_sharing", "fetching"]}
        return {
            "machine": machine,
            "scheduler": {"kind": "dispatch", "placement": {"name": self.placement or "high"}},
            "workload": {"trace": self._trace(), "format": VINESIM, "clock": "trace", "options": options},
            "performance": {"model": shared, "estimate_model": alone} if self.contended else {"model": alone},
        }

    def _deployment(self) -> str | dict[str, Any]:
        """A machine file of the format "vinesim", or the files that make one."""
        from poolwise.errors import InputError

        files = {name: getattr(self, name) for name in ("affinity", "prices", "power", "types")}
        if self.machine is not None and self.machine.suffix == ".toml":
            _refuse({name: path for name, path in files.items() if name != "types"}, "is what the machine file says")
            return str(self.machine)
        settings = self._settings()
        for name, path in {
            "machine": "machine.deployment",
            "affinity": "machine.affinity",
            "inter_arrival": "workload.options.inter_arrival",
        }.items():
            if getattr(self, name) is None and path not in settings:
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"{option} is missing", field=option, remedy=_NEEDED)
        named = {name: str(path) for name, path in {"deployment": self.machine, **files}.items() if path is not None}
        more = {"affinity_kind": self.affinity_kind, "contended": self.contended, "data": self._trace()}
        return {"version": 1, "format": VINESIM, **named, **more}

    def _trace(self) -> str:
        from poolwise import catalog
        from poolwise.errors import InputError

        if self.trace is None:
            raise InputError("no trace is given", field="trace", remedy="name a log, or a recorded run with --run")
        path = catalog.resolve("traces", self.trace)
        if not path.is_file():
            raise InputError("no such file", file=path, remedy="check the path")
        return str(self.trace)

    def _scheduler(self) -> str | dict[str, Any]:
        """What --scheduler names, or what the other options say."""
        from poolwise.errors import InputError

        given = {name: getattr(self, name) for name in ("order", "backfill", "placement", "scope")}
        if self.scheduler is not None:
            twice = next((f"--{name}" for name, value in given.items() if value), None)
            if twice is not None:
                remedy = "--order NAME, or --scheduler FILE without the options that it replaces"
                raise InputError(f"--scheduler says what {twice} says", field="scheduler", remedy=remedy)
            return self.scheduler
        parts = {"order": self.order or "fcfs", "backfill": self.backfill or "easy", "placement": self.placement or "racks"}
        scope = {"scope": (self.scope or ScopeChoice.RACK).value} if parts["placement"] == "racks" else {}
        return {**parts, **scope}


def resolved(run: dict[str, Any], settings: dict[str, Any]) -> Cell:
    """Resolve the sections of a run that options wrote; errors that stand in no file name none."""
    from poolwise.errors import InputError, ManyErrors
    from poolwise.files.document import Document
    from poolwise.studies.study import resolve

    document = Document(Path("command line"), run)
    try:
        cells = resolve(document, settings).cells
    except InputError as error:
        if error.file != document.file:
            raise
        found = error.errors if isinstance(error, ManyErrors) else (error,)
        raise ManyErrors.of([type(e)(e.message, field=e.field, remedy=e.remedy) for e in found]) from error
    if len(cells) != 1:
        raise InputError("one run varies nothing", field="--set", remedy="write a study, and run it with `poolwise run`")
    return cells[0]


_NEEDED = "--format vinesim needs --machine DEPLOYMENT, --affinity FILE and --inter-arrival TIME"


def _refuse(options: dict[str, Any], why: str) -> None:
    """Raise InputError for the first of these options that was given."""
    from poolwise.errors import InputError

    for name, value in options.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} {why}", field=option, remedy="see `poolwise simulate --help`")


def _sharing(tables: tuple[str, ...]) -> dict[str, Any]:
    """Devices shared as performance tables say, KIND=FILE each."""
    from poolwise.errors import InputError

    pairs = [text.partition("=") for text in tables]
    for kind, equals, file in pairs:
        if not (kind and equals and file):
            raise InputError(f"'{kind}{equals}{file}' is not KIND=FILE", field="table", remedy="such as --table fio=fio.csv")
    return {"name": "nvme_sharing", "tables": {kind: file for kind, _, file in pairs}}


def _default_performance(machine: Machine) -> PerformanceSection:
    """Say by name what `api.default_model` chooses."""
    from poolwise import api
    from poolwise.files.component import Component
    from poolwise.files.study import PerformanceSection

    return PerformanceSection(model=Component(name=api.default_model_name(machine)))


def _machine(path: Path | None, processors: int | None) -> str | dict[str, Any]:
    """The machine that --machine or --processors names; raises InputError unless it is one of them."""
    from poolwise import catalog
    from poolwise.errors import InputError

    if (path is None) == (processors is None):
        raise InputError(
            "give either --machine or --processors", field="machine", remedy="--machine MACHINE.toml, or --processors N"
        )
    if processors is not None:
        return {"version": 1, "format": "processors", "count": processors}
    assert path is not None
    found = catalog.machine(path)
    return str(path) if found == path else f"{catalog.PREFIX}{found.stem}"
