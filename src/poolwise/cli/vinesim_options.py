"""Options of `poolwise simulate vinesim`: tasks on processing units, from the files of VineSim."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.panels import COMMON, TABLES
from poolwise.cli.run_options import existing_trace, parse_settings, resolve_run
from poolwise.cli.shared_options import SeedOption, SettingsOption

if TYPE_CHECKING:
    from poolwise.studies.cells import Cell

VINESIM = "vinesim"
"""Name of the format of traces and machines."""


@dataclass(frozen=True)
class VinesimOptions:
    """Deployment, tables and placement of a simulation of tasks on processing units."""

    machine: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Deployment, or a machine file (.toml).", rich_help_panel=COMMON)
    ] = None
    affinity: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Operations per microsecond, unit types x task types.", rich_help_panel=COMMON),
    ] = None
    inter_arrival: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Time between jobs: 7us, exponential(7us), uniform(1us, 13us).", rich_help_panel=COMMON
        ),
    ] = None
    placement: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Placement: a name from `poolwise list placements`, or FILE.py:NAME.",
            show_default="high",
            rich_help_panel=COMMON,
        ),
    ] = None
    contended: Annotated[
        bool, typer.Option("--contended", help="Share links max-min fairly between transfers.", rich_help_panel=COMMON)
    ] = False
    seed: SeedOption = 0
    affinity_kind: Annotated[
        str, typer.Option(metavar="KIND", help="absolute, or relative (factors of the INT column).", rich_help_panel=TABLES)
    ] = "absolute"
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help="Price of each unit type.", rich_help_panel=TABLES)] = None
    power: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Watts, unit types x task types, then idle.", rich_help_panel=TABLES),
    ] = None
    types: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Names of additional unit and task types (TOML).", rich_help_panel=TABLES),
    ] = None
    set_: SettingsOption = field(default_factory=list)

    def cell(self, trace: Path) -> Cell:
        """Resolve the run of a trace; raises InputError for missing options, and for invalid files."""
        settings = parse_settings(self.set_)
        machine = self._deployment(trace, settings)
        options: dict[str, Any] = {} if self.inter_arrival is None else {"inter_arrival": self.inter_arrival}
        options |= {} if self.types is None else {"types": str(self.types)}
        alone = {"name": "combined", "models": ["affinity", "transfer"]}
        shared = {"name": "combined", "models": ["affinity", "network_sharing", "fetching"]}
        run = {
            "machine": machine,
            "scheduler": {"kind": "dispatch", "placement": {"name": self.placement or "high"}},
            "workload": {"trace": existing_trace(trace), "format": VINESIM, "clock": "trace", "options": options},
            "performance": {"model": shared, "estimate_model": alone} if self.contended else {"model": alone},
        }
        return resolve_run(run, settings, self.seed)

    def files(self, trace: Path) -> list[Path]:
        """Return every file that the options name."""
        from poolwise import catalog

        tables = [path for path in (self.affinity, self.prices, self.power, self.types) if path is not None]
        machine = [] if self.machine is None else [catalog.resolve("deployments", self.machine)]
        return [catalog.resolve("traces", trace), *(catalog.resolve("affinities", path) for path in tables), *machine]

    def _deployment(self, trace: Path, settings: dict[str, Any]) -> str | dict[str, Any]:
        """Return a machine file of the format "vinesim", or the files that make one."""
        from poolwise.errors import InputError

        files = {name: getattr(self, name) for name in ("affinity", "prices", "power", "types")}
        if self.machine is not None and self.machine.suffix == ".toml":
            for name, path in files.items():
                if path is not None and name != "types":
                    remedy = f"leave out --{name}, or name the deployment with --machine"
                    raise InputError("the machine file already specifies this table", field=f"--{name}", remedy=remedy)
            return str(self.machine)
        for name, path in {
            "machine": "machine.deployment",
            "affinity": "machine.affinity",
            "inter_arrival": "workload.options.inter_arrival",
        }.items():
            if getattr(self, name) is None and path not in settings:
                option = f"--{name.replace('_', '-')}"
                remedy = "give --machine DEPLOYMENT, --affinity FILE and --inter-arrival TIME"
                raise InputError(f"{option} is missing", field=option, remedy=remedy)
        named = {name: str(path) for name, path in {"deployment": self.machine, **files}.items() if path is not None}
        more = {"affinity_kind": self.affinity_kind, "contended": self.contended, "data": existing_trace(trace)}
        return {"version": 1, "format": VINESIM, **named, **more}
