"""`poolwise simulate --format vinesim`: tasks on processing units, from the files of VineSim."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolwise.interfaces import PlacementPolicy
    from poolwise.traces.vinesim import VineSimCase


@dataclass(frozen=True)
class Inputs:
    """Options of the command that choose the machine and the tasks; None for those that were not given."""

    trace: Path
    machine: Path | None
    affinity: Path | None
    affinity_kind: str
    prices: Path | None
    power: Path | None
    types: Path | None
    inter_arrival: str | None
    contended: bool
    seed: int

    @classmethod
    def found(cls, **options: Any) -> Inputs:
        """Find what is shipped and named "catalog:NAME" among the options."""
        from poolwise import catalog

        paths = {name: catalog.resolve(kind, options[name]) for name, kind in _SHIPPED.items() if options[name] is not None}
        return cls(**{**options, **paths})

    def files(self) -> list[Path]:
        """Every file that is read."""
        return [path for name in _SHIPPED if (path := getattr(self, name)) is not None]

    def read(self) -> VineSimCase:
        """Read the case; raises InputError for an option that is missing and for what the files say."""
        from poolwise.errors import InputError
        from poolwise.traces import vinesim
        from poolwise.traces.vinesim.affinity import AffinityKind, check_kind

        for name in ("machine", "affinity", "inter_arrival"):
            if getattr(self, name) is None:
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"{option} is missing", field=option, remedy=_NEEDED)
        assert self.machine is not None and self.affinity is not None and self.inter_arrival is not None
        check_kind(self.affinity_kind)
        kind: AffinityKind = "relative" if self.affinity_kind == "relative" else "absolute"
        return vinesim.load(
            self.trace,
            self.machine,
            self.affinity,
            self.inter_arrival,
            affinity_kind=kind,
            prices=self.prices,
            power=self.power,
            types=self.types,
            contended=self.contended,
            seed=self.seed,
        )


_SHIPPED = {
    "trace": "traces",
    "machine": "deployments",
    "affinity": "affinities",
    "prices": "affinities",
    "power": "affinities",
    "types": "affinities",
}
"""Option -> kind of what is shipped for it; what belongs to an affinity table is found beside it."""
_NEEDED = "--format vinesim needs --machine DEPLOYMENT, --affinity FILE and --inter-arrival TIME"


def placement_of(name: str, settings: list[str]) -> PlacementPolicy:
    """Configure a placement from its name and KEY=VALUE settings; raises InputError."""
    from poolwise import registry
    from poolwise.studies.study import parse_setting

    placement: PlacementPolicy = registry.make("placements", name, **dict(parse_setting(text) for text in settings))
    return placement


def interval(text: str | None) -> int | None:
    """Ns of a sampling interval such as "10us" or "10" (us); None for -1 or no text. Raises InputError."""
    from poolwise.errors import InputError
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


def print_summary(content: dict[str, Any], title: str) -> None:
    """Print the metrics of a run as a table."""
    from rich.table import Table

    from poolwise.cli.console import out

    table = Table(title=title, box=None, pad_edge=False, title_justify="left")
    for heading in ("", "mean", "median", "99 %", "99.9 %"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, words in (
        ("job_latency_us", "job latency, us"),
        ("task_latency_us", "task latency, us"),
        ("response_us", "transfer and computation, us"),
    ):
        table.add_row(words, *(_number(content[name][key]) for key in ("mean", "p50", "p99", "p99_9")))
    out.print(table)
    use = content["utilization"]
    types = ", ".join(f"{name} {_number(value)}" for name, value in use["by_type"].items())
    lines = [
        f"{content['jobs']:,} jobs of {content['tasks']:,} tasks in {_number(content['makespan_us'])} us",
        f"utilisation {_number(use['overall'])} ({types})",
    ]
    if content["purchase_cost"] is not None:
        lines.append(f"cost of purchase {_number(content['purchase_cost'])}")
    if content["energy_j"] is not None:
        lines.append(f"energy {_number(content['energy_j'])} J")
    lines.append(f"simulated by the {content['engine']} engine in {content['wall_s']:.3g} s")
    for line in lines:
        out.print(line, highlight=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"
