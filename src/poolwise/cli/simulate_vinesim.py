"""`poolwise simulate vinesim`: tasks on processing units, from the files of VineSim."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise import catalog
from poolwise.cli.examples import command
from poolwise.cli.panels import ADVANCED, TABLES
from poolwise.cli.run_options import existing_trace, name_option, resolve_run, with_placement
from poolwise.cli.run_output import OutputOptions
from poolwise.cli.shared_options import SeedOption, SettingsOption
from poolwise.cli.simulate import simulate_cell, simulations
from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.studies.cells import Cell

VINESIM = "vinesim"
"""Name of the format of traces and machines."""


@dataclass(frozen=True)
class VinesimOptions:
    """Deployment, tables and placement of a simulation of tasks on processing units."""

    machine: Annotated[Path | None, typer.Option(metavar="FILE", help="Deployment, or a machine file (.toml).")] = None
    affinity: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Operations per microsecond, unit types x task types.")
    ] = None
    inter_arrival: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time between jobs: 7us, exponential(7us), uniform(1us, 13us).")
    ] = None
    placement: Annotated[str | None, name_option("Placement", "placements", "high")] = None
    contended: Annotated[bool, typer.Option("--contended", help="Share links max-min fairly among transfers.")] = False
    seed: SeedOption = 0
    affinity_kind: Annotated[
        str, typer.Option(metavar="KIND", help="absolute, or relative (factors of the INT column).", rich_help_panel=TABLES)
    ] = "absolute"
    prices: Annotated[Path | None, typer.Option(metavar="FILE", help="Price of each unit type.", rich_help_panel=TABLES)] = None
    power: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Watts, unit types x task types, then idle.", rich_help_panel=TABLES)
    ] = None
    types: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Names of additional unit and task types (TOML).", rich_help_panel=TABLES),
    ] = None
    set_: SettingsOption = field(default_factory=list)

    def cell(self, trace: Path) -> Cell:
        """Resolve the run of a trace; raises InputError for missing options, and for invalid files."""
        settings = with_placement(self.set_)
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
        tables = [path for path in (self.affinity, self.prices, self.power, self.types) if path is not None]
        machine = [] if self.machine is None else [catalog.resolve("deployments", self.machine)]
        return [catalog.resolve("traces", trace), *(catalog.resolve("affinities", path) for path in tables), *machine]

    def _deployment(self, trace: Path, settings: dict[str, Any]) -> str | dict[str, Any]:
        """Return a machine file of the format "vinesim", or the files that make one."""
        files = {name: getattr(self, name) for name in ("affinity", "prices", "power", "types")}
        if self.machine is not None and self.machine.suffix == ".toml":
            for name, path in files.items():
                if path is not None and name != "types":
                    remedy = f"omit --{name}, or name the deployment with --machine"
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


@command(simulations, "poolwise simulate vinesim jobs.trace --machine gpus.txt --affinity affinity.txt --inter-arrival 7us")
def vinesim(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="Trace in VineSim's format, or catalog:NAME.")],
    options: VinesimOptions,
    output: OutputOptions,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Sampling interval for the utilization of processing units in --json, such as 10us.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
) -> None:
    """Simulate tasks on processing units, from VineSim's files.

    Without a machine file, --machine, --affinity and --inter-arrival are required.
    """
    simulate_cell(options.cell(trace), options.files(trace), output, output.metrics(), _interval(sample))


def _interval(text: str | None) -> int | None:
    """Return the ns of a sampling interval such as "10us" or "10" (us); None for -1 or no text. Raises InputError."""
    from poolwise.traces.vinesim import InterArrival

    if text is None or text.strip() == "-1":
        return None
    try:
        gap = InterArrival.parse(text)
    except InputError:
        gap = InterArrival("fixed", 0.0)
    if gap.distribution != "fixed" or gap.low < 1:
        raise InputError(f"'{text}' is not a sampling interval", field="--sample", remedy="write 10us, or -1 for none")
    return round(gap.low)
