"""Benchmark cases and their registry."""

from __future__ import annotations

import importlib
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

Figures = dict[str, float]
F = TypeVar("F", bound=Callable[[], Figures])
T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """A benchmark: a function that measures, and targets for its figures (name -> (comparison, bound)).

    A case that is `on_request` runs only if it is named.
    """

    name: str
    measure: Callable[[], Figures]
    targets: dict[str, tuple[str, float]]
    on_request: bool = False

    def run(self) -> Figures:
        """Measure in a new process, so that its peak memory is separate; the process may have child processes."""
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(_measured, self.name, self.measure.__module__).result()

    def reached(self, figures: Figures) -> dict[str, bool]:
        """Return, for each target, whether the figures reach it."""
        return {
            name: figures[name] >= bound if sign == ">=" else figures[name] <= bound
            for name, (sign, bound) in self.targets.items()
        }


cases: dict[str, Case] = {}


def case(name: str, on_request: bool = False, **targets: tuple[str, float]) -> Callable[[F], F]:
    """Register a benchmark under a name, with targets such as `ratio=(">=", 300)`."""

    def keep(measure: F) -> F:
        cases[name] = Case(name, measure, targets, on_request)
        return measure

    return keep


def seconds(act: Callable[[], T], repeat: int = 1) -> tuple[float, T]:
    """Return the least CPU time of repeated calls, excluding other processes, and the last result."""
    best = float("inf")
    for _ in range(repeat):
        begun = time.process_time()
        result = act()
        best = min(best, time.process_time() - begun)
    return best, result


def peak_mb() -> float:
    """Return the peak memory of this process, MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def _measured(name: str, module: str) -> Figures:
    importlib.import_module(module)  # registers its cases in this process
    return {**cases[name].measure(), "peak_mb": peak_mb()}
