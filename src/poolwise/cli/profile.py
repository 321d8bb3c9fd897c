"""`poolwise profile`: measure and fit slowdown profiles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.atomic_write import check_writable, write_whole
from poolwise.cli.app import app
from poolwise.cli.console import progress
from poolwise.cli.examples import examples
from poolwise.cli.output import print_json, provenance
from poolwise.cli.tables import print_table
from poolwise.presentation.table import Table

if TYPE_CHECKING:
    from poolwise.performance.fitting import Errors, Fit
    from poolwise.presentation.figure import Figure

commands = typer.Typer(
    help="Measure and fit slowdown profiles.\n\nA profile is the slowdown of a workload as a function of the "
    "share of its memory that is remote.",
    no_args_is_help=True,
)


@commands.callback()
def _group() -> None:
    pass


@commands.command("fit", epilog=examples("poolwise profile fit measured.csv --out profiles.csv"))
def fit(
    measurements: Path = typer.Argument(
        metavar="FILE", help="CSV with the columns workload, remote, seconds, and optionally frequency."
    ),
    pieces: int = typer.Option(3, min=1, max=3, help="Number of linear pieces, of equal width."),
    convex: bool = typer.Option(True, "--convex/--no-convex", help="Require nondecreasing slopes."),
    out: Path = typer.Option(
        Path("profiles.csv"), metavar="FILE", help="File for the profiles; the plot goes to the same folder."
    ),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of a table."),
) -> None:
    """Fit piecewise-linear profiles to completion times.

    Writes them as CSV, with a plot (PNG, SVG, PDF) in the same folder.
    """
    from poolwise.performance import fitting
    from poolwise.report.figures import save

    check_writable(out)
    fits = [fitting.fit(measured, pieces, convex=convex) for measured in fitting.read_measurements(measurements)]
    write_whole(out, fitting.to_csv([fitted.profile for fitted in fits]).encode())
    save(_figure(fits, out.stem), out.parent)
    if json:
        content = {"profiles": [_to_dict(fitted) for fitted in fits], "file": str(out)}
        print_json(content, provenance(None, [measurements]))
        return
    rows = []
    for fitted in fits:
        knots = ", ".join(f"{r:g}: {s:.3g}" for r, s in zip(fitted.profile.remote, fitted.profile.slowdown, strict=True))
        errors = (fitted.errors.least, fitted.errors.mean, fitted.errors.most, fitted.extra)
        rows.append([fitted.profile.name, knots, *(f"{e:.2g}" for e in errors), f"{fitted.profile.frequency_share:.3g}"])
    columns = ["workload", "slowdown at the knots", "MSE min", "avg", "max", "convexity adds", "frequency share"]
    print_table(Table("Profiles", columns, rows))
    progress(f"profiles: {out}")


def _to_dict(fit: Fit) -> dict[str, object]:
    return {
        "name": fit.profile.name,
        "remote": list(fit.profile.remote),
        "slowdown": list(fit.profile.slowdown),
        "frequency_share": fit.profile.frequency_share,
        "mse_remote": _errors(fit.errors),
        "mse_frequency": _errors(fit.frequency),
        "mse_added_by_convexity": fit.extra,
    }


def _errors(errors: Errors | None) -> dict[str, float] | None:
    return None if errors is None else {"min": errors.least, "avg": errors.mean, "max": errors.most}


def _figure(fits: list[Fit], name: str) -> Figure:
    import numpy as np

    from poolwise.presentation.figure import Axis, Curves

    shares = np.linspace(0, max(fitted.profile.remote[-1] for fitted in fits), 61)
    series = {}
    for fitted in fits:
        inside = shares <= fitted.profile.remote[-1] + 1e-12
        series[fitted.profile.name] = np.where(inside, fitted.profile.at(shares), np.nan).tolist()
        marks = np.full(len(shares), np.nan)
        for share in {r for r, _ in fitted.points}:
            at = int(np.argmin(np.abs(shares - share)))
            marks[at] = np.mean([s for r, s in fitted.points if r == share])
        series[f"{fitted.profile.name}, measured"] = marks.tolist()
    return Curves(
        name=name,
        title="Slowdown as a function of the share of remote memory",
        caption="Lines: fitted profiles. Single marks: mean measurements.",
        x=shares.tolist(),
        series=series,
        x_axis=Axis("share of remote memory"),
        y_axis=Axis("completion time / that with all memory local - 1"),
    )


app.add_typer(commands, name="profile")
