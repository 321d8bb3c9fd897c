"""`poolwise compile`: compile every kernel ahead of time instead of at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from poolwise.cli.app import app
from poolwise.cli.console import print_line
from poolwise.cli.examples import command


@command(app, "poolwise compile", name="compile")
def compile_kernels() -> None:
    """Compile all kernels ahead of time.

    Uses all cores; for container images, or before a benchmark. Kernels that are already compiled are only loaded.
    """
    import time

    from joblib import Parallel, cpu_count, delayed  # type: ignore[import-untyped]  # joblib ships no types

    start = time.perf_counter()
    names = list(families())
    workers = Parallel(n_jobs=min(cpu_count(), len(names)), backend="loky", return_as="generator_unordered", batch_size=1)
    for name, seconds in workers(delayed(_load)(name) for name in names):
        print_line(f"{name}: {seconds:.1f} s")
    print_line(f"all kernels: {time.perf_counter() - start:.1f} s")


def _load(name: str) -> tuple[str, float]:
    """Load a family of kernels; return its name and the duration in seconds."""
    import time

    start = time.perf_counter()
    families()[name]()
    return name, time.perf_counter() - start


def families() -> Mapping[str, Callable[[], object]]:
    """Return family of kernels -> function that compiles or loads it; slow ones first, to balance the cores."""
    from poolwise.batch.methods.place import Place
    from poolwise.engines.list_scheduling import loading
    from poolwise.engines.select import ENGINES
    from poolwise.engines.shared_nodes.replay import load_rare

    runs = {family.name: family.load for family in ENGINES}
    rare = {"shared nodes that fail or have windows": load_rare, "racks whose capacity changes": loading.load_rare}
    return {"batch placement": Place().prepare, **runs, **rare, "minimum-cost flow": _flow}


def _flow() -> None:
    """Solve a graph of two arcs with each solver of Poolwise, and an incremental one."""
    from typing import get_args

    from poolwise.optimize.min_cost_flow import FlowSolver, min_cost_flow
    from poolwise.optimize.min_cost_flow.incremental import IncrementalFlow

    for solver in get_args(FlowSolver):
        min_cost_flow([0, 0], [1, 1], 0, 1, [1, 2], [2, -2], solver=solver)
    network = IncrementalFlow()
    one, other = network.add_nodes([1, -1]).tolist()
    network.add_arcs([one], [other], [1], [1])
    network.solve()
