"""`poolwise place`: place a batch of workloads on CPU modules with least energy and accepted slowdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from poolwise.cli.examples import examples

if TYPE_CHECKING:
    from poolwise.batch.problem.assignment import Solution
    from poolwise.batch.problem.check import CheckedAssignment


def place(
    batch: Path = typer.Argument(help="BATCH.toml, or a shipped batch: catalog:NAME, see `poolwise list batches`."),
    method: str = typer.Option("place", help="A name from `poolwise list methods`, or FILE.py:NAME."),
    time_limit: str = typer.Option("1s", help="Time that the method may take: 50ms, 1s, 60s."),
    theta: str | None = typer.Option(None, help="Instead of the file's: printed or relative."),
    eta: float | None = typer.Option(None, min=0, max=1, help="Instead of the file's: weight of energy."),
    tolerance: float | None = typer.Option(None, min=0, help="Instead of the file's: accepted slowdown, for all."),
    seed: int | None = typer.Option(None, min=0, help="Instead of the file's: seed of the draws."),
    json: bool = typer.Option(False, "--json", help="Print exactly one JSON object."),
    csv: Path | None = typer.Option(None, help="Write a row for each workload as CSV."),
    parquet: Path | None = typer.Option(None, help="Write a row for each workload as Parquet."),
) -> None:
    """Place a batch of workloads on modules; print where each runs, its memory, the cost and the distance to the optimum."""
    import time

    import polars as pl

    from poolwise import catalog
    from poolwise.batch.methods.method import Limit, find_method
    from poolwise.batch.problem.check import check_assignment
    from poolwise.cli.console import error, warn
    from poolwise.cli.output import check_exports, export, print_json, provenance
    from poolwise.errors import InfeasibleError
    from poolwise.files.batch import read_batch

    check_exports(csv, parquet)
    shipped = not batch.suffix and not batch.exists()  # its name alone will do
    path = catalog.find("batches", str(batch).removeprefix(catalog.PREFIX)) if shipped else catalog.resolve("batches", batch)
    problem = read_batch(path, seed=seed, eta=eta, theta=theta, tolerance=tolerance)
    chosen, seconds = find_method(method), _seconds(time_limit)
    if hasattr(chosen, "prepare"):
        chosen.prepare()  # compiling does not count towards the time limit
    begun = time.perf_counter()
    solution = chosen.solve(problem, Limit(seconds))
    wall = time.perf_counter() - begun
    verdict = check_assignment(problem, solution.assignment, partial=bool(solution.dropped))
    for note in solution.notes:
        warn(note)
    content, source = to_dict(solution, verdict, method, wall), provenance(seed or 0, [path])
    export(pl.DataFrame(content["workloads"]), source, csv, parquet)
    if json:
        print_json({**content, "provenance": source})
    else:
        _print(solution, verdict, method, wall)
    if solution.dropped:
        names = ", ".join(problem.batch.name[w] for w in solution.dropped)
        kept = len(problem.batch) - len(solution.dropped)
        error(f"{solution.unmet}\n  placed {kept} of {len(problem.batch)}; left out: {names}")
        raise typer.Exit(InfeasibleError.exit_code)


def _seconds(text: str) -> float:
    from poolwise.errors import InputError
    from poolwise.units import SECOND, parse

    try:
        ns = parse(text, "time")
    except ValueError as problem:
        raise InputError(str(problem), field="time-limit", remedy="write 50ms, 1s or 60s") from None
    if ns <= 0:
        raise InputError("the time limit must be above 0", field="time-limit", remedy="write 50ms, 1s or 60s")
    return ns / SECOND


def to_dict(solution: Solution, verdict: CheckedAssignment, method: str, wall_s: float) -> dict[str, Any]:
    """Plain data, as `poolwise place --json` prints it."""
    from math import isfinite

    problem, where = solution.problem, solution.assignment
    theta, completion = solution.theta, solution.completion
    rows = [
        {
            "name": problem.batch.name[w],
            "module": problem.modules.name[int(where.module[w])],
            "local_mib": float(where.local[w] * problem.batch.memory[w]),
            "remote_mib": float((1 - where.local[w]) * problem.batch.memory[w]),
            "slowdown": float(theta[w]),
            "tolerance": float(problem.batch.tolerance[w]),
            "completion_ratio": float(completion[w]),
        }
        for w in where.placed.tolist()
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
        "slowdown": float(theta[where.placed].sum()),
        "modules_on": len(set(where.module[where.placed].tolist())),
        "workloads": rows,
        "dropped": [problem.batch.name[w] for w in solution.dropped],
        "unmet": solution.unmet,
        "checker": {
            "valid": verdict.valid,
            "objective": verdict.objective,
            "violations": [str(violation) for violation in verdict.violations],
        },
        "notes": list(solution.notes),
        "wall_s": wall_s,
    }


def _print(solution: Solution, verdict: CheckedAssignment, method: str, wall_s: float) -> None:
    from rich.table import Table

    from poolwise.cli.console import out
    from poolwise.units import format_memory

    content = to_dict(solution, verdict, method, wall_s)
    rows = Table("workload", "module", "local", "remote", "slowdown", "accepted", box=None, pad_edge=False)
    for row in content["workloads"]:
        split = (format_memory(row["local_mib"]), format_memory(row["remote_mib"]))
        rows.add_row(row["name"], row["module"], *split, f"{row['slowdown']:.4f}", f"{row['tolerance']:.4f}")
    out.print(rows)
    lines = Table("", "value", box=None, pad_edge=False, show_header=False)
    lines.add_row("objective", f"{content['objective']:.6g}")
    if content["bound"] is not None:
        gap = "" if content["gap"] is None else f", gap {100 * content['gap']:.2f} %"
        lines.add_row(f"proven bound of {solution.bound_of}", f"{content['bound']:.6g}{gap}")
    lines.add_row("energy", f"{content['energy']:.6g} on {content['modules_on']} modules")
    lines.add_row(f"sum of slowdowns (theta {solution.problem.theta})", f"{content['slowdown']:.6g}")
    said = "every constraint holds" if verdict.valid else "; ".join(f"({k}) broken {n} x" for k, n in verdict.count().items())
    lines.add_row("independent checker", said)
    lines.add_row("placed in", f"{wall_s:.3g} s")
    out.print(lines)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise place batch-150x1200 --method first-fit"))(place)
