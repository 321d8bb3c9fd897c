"""`poolwise place`: place a batch of workloads on CPU modules, weighing energy against slowdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples

if TYPE_CHECKING:
    from poolwise.api.batches import BatchPlacement


def place(
    batch: Path = typer.Argument(
        metavar="BATCH", help="BATCH.toml, or a shipped batch: catalog:NAME (`poolwise list batches`)."
    ),
    method: str = typer.Option("place", metavar="NAME", help="Method: a name from `poolwise list methods`, or FILE.py:NAME."),
    time_limit: str = typer.Option("1s", metavar="TIME", help="Time limit for the method: 50ms, 1s, 60s."),
    theta: str | None = typer.Option(None, metavar="FORM", help="Override theta of the file: printed or relative."),
    eta: float | None = typer.Option(None, min=0, max=1, help="Override eta of the file, the weight of energy."),
    tolerance: float | None = typer.Option(None, min=0, help="Override the accepted slowdown of all workloads."),
    seed: int | None = typer.Option(None, min=0, help="Override the random seed of the file."),
    json: bool = typer.Option(False, "--json", help="Print one JSON object instead of tables."),
    csv: Path | None = typer.Option(None, metavar="FILE", help="Write one row per workload as CSV."),
    parquet: Path | None = typer.Option(None, metavar="FILE", help="Write one row per workload as Parquet."),
) -> None:
    """Place a batch of workloads on CPU modules.

    Prints the module and memory of each workload, the cost, and the distance to the optimum. Exits with 3 if some workloads do
    not fit.
    """
    from poolwise.api import batches
    from poolwise.cli.console import error, note
    from poolwise.cli.output import check_exports, export, print_json, provenance
    from poolwise.errors import InfeasibleError

    check_exports(csv, parquet)
    placed = batches.place(batch, method, time_limit=time_limit, theta=theta, eta=eta, tolerance=tolerance, seed=seed)
    solution, problem = placed.solution, placed.solution.problem
    for text in solution.notes:
        note(text)
    source = provenance(seed or 0, [placed.file])
    export(placed.frame(), source, csv, parquet)
    if json:
        print_json(placed.to_dict(), source, solution.notes)
    else:
        _print(placed)
    if solution.dropped:
        names = ", ".join(problem.batch.name[w] for w in solution.dropped)
        count = len(problem.batch) - len(solution.dropped)
        error(f"{solution.unmet}\n  placed {count} of {len(problem.batch)}; left out: {names}")
        raise typer.Exit(InfeasibleError.exit_code)


def _print(placed: BatchPlacement) -> None:
    from poolwise.cli.tables import plain_table, print_table
    from poolwise.units import format_memory

    content, solution, checked = placed.to_dict(), placed.solution, placed.checked
    rows = plain_table("workload", "module", "local", "remote", "slowdown", "accepted")
    for row in content["workloads"]:
        split = (format_memory(row["local_mib"]), format_memory(row["remote_mib"]))
        rows.add_row(row["name"], row["module"], *split, f"{row['slowdown']:.4f}", f"{row['tolerance']:.4f}")
    print_table(rows)
    lines = plain_table("", "value")
    lines.show_header = False
    lines.add_row("objective", f"{content['objective']:.6g}")
    if content["bound"] is not None:
        gap = "" if content["gap"] is None else f", gap {100 * content['gap']:.2f} %"
        lines.add_row(f"proven bound of {solution.bound_of}", f"{content['bound']:.6g}{gap}")
    lines.add_row("energy", f"{content['energy']:.6g} on {content['modules_on']} modules")
    lines.add_row(f"sum of slowdowns (theta {solution.problem.theta})", f"{content['slowdown']:.6g}")
    violations = "; ".join(f"({k}) violated {n} x" for k, n in checked.count().items())
    lines.add_row("independent checker", "every constraint holds" if checked.valid else violations)
    lines.add_row("placed in", f"{placed.wall_s:.3g} s")
    print_table(lines)


def register(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("poolwise place batch-150x1200 --method first-fit"))(place)
