"""`poolwise compile`: compile every kernel now instead of at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer


def compile_kernels() -> None:
    """Compile all kernels, for an image or before a benchmark; at the second call they are only loaded."""
    import time

    from poolwise.cli.console import out

    total = 0.0
    for family, load in families().items():
        begun = time.perf_counter()
        load()
        seconds = time.perf_counter() - begun
        total += seconds
        out.print(f"{family}: {seconds:.1f} s", highlight=False)
    out.print(f"all kernels: {total:.1f} s", highlight=False)


def families() -> Mapping[str, Callable[[], object]]:
    """Family of kernels -> what compiles or loads all of them."""
    from poolwise.batch.place import Place
    from poolwise.engine import compiled, dispatch

    return {
        "list scheduling": compiled.load,
        "task dispatch": dispatch.load,
        "batch placement": Place().prepare,
        "minimum-cost flow": _flow,
    }


def _flow() -> None:
    """Solve a graph of two arcs with each solver of our own, and one that changes."""
    from typing import get_args

    from poolwise.optimize.min_cost_flow import Solver, min_cost_flow
    from poolwise.optimize.min_cost_flow.incremental import IncrementalFlow

    for solver in get_args(Solver):
        min_cost_flow([0, 0], [1, 1], 0, 1, [1, 2], [2, -2], solver=solver)
    network = IncrementalFlow()
    one, other = network.add_nodes([1, -1]).tolist()
    network.add_arcs([one], [other], [1], [1])
    network.solve()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compile")(compile_kernels)
