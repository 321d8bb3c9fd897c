"""`poolwise compile`: compile every kernel ahead of time instead of at its first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from typer import Option

from poolwise.cli.app import app
from poolwise.cli.console import print_line
from poolwise.cli.examples import command
from poolwise.errors import InputError
from poolwise.kernels import GENERIC, GENERIC_FEATURES


@command(app, "poolwise compile --out kernels", name="compile")
def compile_kernels(
    target: Annotated[
        str | None,
        Option(help="CPU to compile for: x86-64-v3, the target of platform wheels [default: this computer's]."),
    ] = None,
    out: Annotated[Path | None, Option(help="Folder for the compiled kernels [default: the user's cache].")] = None,
) -> None:
    """Compile all kernels ahead of time.

    Uses all cores; for container images, or before a benchmark. Kernels that are already compiled are only loaded.
    """
    import time

    from joblib import Parallel, cpu_count, delayed  # type: ignore[import-untyped]  # joblib ships no types

    _set_environment(target, out)
    start = time.perf_counter()
    names = list(families())
    workers = Parallel(n_jobs=min(cpu_count(), len(names)), backend="loky", return_as="generator_unordered", batch_size=1)
    for name, seconds in workers(delayed(_load)(name) for name in names):
        print_line(f"{name}: {seconds:.1f} s")
    print_line(f"all kernels: {time.perf_counter() - start:.1f} s")


def _set_environment(target: str | None, out: Path | None) -> None:
    """Set the environment variables that workers inherit; Numba reads them when it is first imported."""
    if target is not None:
        if target != GENERIC:
            raise InputError(f"unknown target {target!r}", remedy=f"use {GENERIC}, or omit --target for this computer")
        os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = GENERIC, GENERIC_FEATURES
    if out is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(out.resolve())


def _load(name: str) -> tuple[str, float]:
    """Load a family of kernels; return its name and the duration in seconds."""
    import time

    start = time.perf_counter()
    families()[name]()
    return name, time.perf_counter() - start


def families() -> Mapping[str, Callable[[], object]]:
    """Return a map from each family of kernels to the function that compiles or loads it.

    Slow ones come first, to balance the cores.
    """
    from poolwise.batch.methods.place import Place
    from poolwise.engines.compositions.replay import load_compositions
    from poolwise.engines.dispatch import replay as dispatch
    from poolwise.engines.list_scheduling import loading
    from poolwise.engines.shared_nodes import replay as shared_nodes

    def shared() -> None:
        shared_nodes.load()
        shared_nodes.load_rare()

    def dispatching() -> None:
        dispatch.load()
        dispatch.load_graph()

    return {
        "shared nodes": shared,
        "list scheduling": loading.load_all,
        "list scheduling on mixed nodes": lambda: loading.load_all(mixed=True),
        "batch placement": Place().prepare,
        "minimum-cost flow": _flow,
        "task dispatch": dispatching,
        "composed devices": load_compositions,
    }


def _flow() -> None:
    """Solve a graph with two arcs by each of Poolwise's solvers, including the incremental one."""
    from typing import get_args

    from poolwise.optimize.min_cost_flow import FlowSolver, min_cost_flow
    from poolwise.optimize.min_cost_flow.incremental import IncrementalFlow

    for solver in get_args(FlowSolver):
        min_cost_flow([0, 0], [1, 1], 0, 1, [1, 2], [2, -2], solver=solver)
    network = IncrementalFlow()
    source, sink = network.add_nodes([1, -1]).tolist()
    network.add_arcs([source], [sink], [1], [1])
    network.solve()
