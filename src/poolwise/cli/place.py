"""`poolwise place`: place a batch of workloads on CPU modules, weighing energy against slowdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolwise.cli.examples import examples

if TYPE_CHECKING:
    from poolwise.batch.problem.assignment import Solution
    from poolwise.batch.problem.check import CheckedAssignment


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
    import time

    import polars as pl

    from poolwise import catalog
    from poolwise.batch.methods.method import Limit, find_method
    from poolwise.batch.problem.check import check_assignment
    from poolwise.cli.console import error, note
    from poolwise.cli.output import check_exports, export, print_json, provenance
    from poolwise.errors import InfeasibleError
    from poolwise.files.batch import read_batch

    check_exports(csv, parquet)
    shipped = not batch.suffix and not batch.exists()  # the bare name of a shipped batch
    path = catalog.find("batches", str(batch).removeprefix(catalog.PREFIX)) if shipped else catalog.resolve("batches", batch)
    problem = read_batch(path, seed=seed, eta=eta, theta=theta, tolerance=tolerance)
    chosen, seconds = find_method(method), _seconds(time_limit)
    if hasattr(chosen, "prepare"):
        chosen.prepare()  # compiling does not count towards the time limit
    start = time.perf_counter()
    solution = chosen.solve(problem, Limit(seconds))
    wall = time.perf_counter() - start
    checked = check_assignment(problem, solution.assignment, partial=bool(solution.dropped))
    for text in solution.notes:
        note(text)
    content, source = to_dict(solution, checked, method, wall), provenance(seed or 0, [path])
    export(pl.DataFrame(content["workloads"]), source, csv, parquet)
    if json:
        print_json(content, source, solution.notes)
    else:
        _print(solution, checked, method, wall)
    if solution.dropped:
        names = ", ".join(problem.batch.name[w] for w in solution.dropped)
        placed = len(problem.batch) - len(solution.dropped)
        error(f"{solution.unmet}\n  placed {placed} of {len(problem.batch)}; left out: {names}")
        raise typer.Exit(InfeasibleError.exit_code)


def _seconds(text: str) -> float:
    from poolwise.errors import InputError
    from poolwise.units import SECOND, parse

    try:
        ns = parse(text, "time")
    except ValueError as problem:
        raise InputError(str(problem), field="time-limit", remedy="write 50ms, 1s or 60s") from None
    if ns <= 0:
        raise InputError("the time limit must be greater than 0", field="time-limit", remedy="write 50ms, 1s or 60s")
    return ns / SECOND


def to_dict(solution: Solution, checked: CheckedAssignment, method: str, wall_s: float) -> dict[str, Any]:
    """Return a solution as plain data, as `poolwise place --json` prints it."""
    from math import isfinite

    problem, assignment = solution.problem, solution.assignment
    theta, completion = solution.theta, solution.completion
    rows = [
        {
            "name": problem.batch.name[w],
            "module": problem.modules.name[int(assignment.module[w])],
            "local_mib": float(assignment.local[w] * problem.batch.memory[w]),
            "remote_mib": float((1 - assignment.local[w]) * problem.batch.memory[w]),
            "slowdown": float(theta[w]),
            "tolerance": float(problem.batch.tolerance[w]),
            "completion_ratio": float(completion[w]),
        }
        for w in assignment.placed.tolist()
    ]
    return {
        "method": method,
        "status": solution.status,
        "problem": {"theta": problem.theta, "eta": problem.eta, "clip": problem.clip, "normalise": problem.normalise},
        "objective": solution.objective,
        "bound": solution.bound if isfinite(solution.bound) else None,
        "bound_of": solution.bound_of,
        "gap": solution.gap if isfinite(solution.gap) else None,
        "energy": solution.energy,
        "slowdown": float(theta[assignment.placed].sum()),
        "modules_on": len(set(assignment.module[assignment.placed].tolist())),
        "workloads": rows,
        "dropped": [problem.batch.name[w] for w in solution.dropped],
        "unmet": solution.unmet,
        "checker": {
            "valid": checked.valid,
            "objective": checked.objective,
            "violations": [str(violation) for violation in checked.violations],
        },
        "wall_s": wall_s,
    }


def _print(solution: Solution, checked: CheckedAssignment, method: str, wall_s: float) -> None:
    from poolwise.cli.tables import plain_table, print_table
    from poolwise.units import format_memory

    content = to_dict(solution, checked, method, wall_s)
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
    lines.add_row("placed in", f"{wall_s:.3g} s")
    print_table(lines)


def register(app: typer.Typer) -> None:
    """Register the command."""
    app.command(epilog=examples("poolwise place batch-150x1200 --method first-fit"))(place)
