"""`poolwise compile`: compile every kernel now instead of at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import typer

from poolwise.cli.examples import examples


def compile_kernels() -> None:
    """Compile all kernels on all cores, for an image or before a benchmark; at the second call they are only loaded."""
    import time

    from joblib import Parallel, cpu_count, delayed  # type: ignore[import-untyped]  # joblib ships no types

    from poolwise.cli.console import out

    begun = time.perf_counter()
    names = list(families())
    workers = Parallel(n_jobs=min(cpu_count(), len(names)), backend="loky", return_as="generator_unordered", batch_size=1)
    for name, seconds in workers(delayed(_load)(name) for name in names):
        out.print(f"{name}: {seconds:.1f} s", highlight=False)
    out.print(f"all kernels: {time.perf_counter() - begun:.1f} s", highlight=False)


def _load(name: str) -> tuple[str, float]:
    """Load a family of kernels; returns its name and the seconds that it took."""
    import time

    begun = time.perf_counter()
    families()[name]()
    return name, time.perf_counter() - begun


def families() -> Mapping[str, Callable[[], object]]:
    """CompiledEngine of kernels -> what compiles or loads all of them; the longest first, since cores share them out."""
    from poolwise.batch.methods.place import Place
    from poolwise.engines.list_scheduling import loading
    from poolwise.engines.select import ENGINES
    from poolwise.engines.shared_nodes.replay import load_rare

    runs = {family.name: family.load for family in ENGINES}
    rare = {"shared nodes that fail or have windows": load_rare, "racks whose capacity changes": loading.load_rare}
    return {"batch placement": Place().prepare, **runs, **rare, "minimum-cost flow": _flow}


def _flow() -> None:
    """Solve a graph of two arcs with each solver of our own, and one that changes."""
    from typing import get_args

    from poolwise.optimize.min_cost_flow import FlowSolver, min_cost_flow
    from poolwise.optimize.min_cost_flow.incremental import IncrementalFlow

    for solver in get_args(FlowSolver):
        min_cost_flow([0, 0], [1, 1], 0, 1, [1, 2], [2, -2], solver=solver)
    network = IncrementalFlow()
    one, other = network.add_nodes([1, -1]).tolist()
    network.add_arcs([one], [other], [1], [1])
    network.solve()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compile", epilog=examples("poolwise compile"))(compile_kernels)
