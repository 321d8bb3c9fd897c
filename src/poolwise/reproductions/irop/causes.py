"""Switches and witness rows of the IRoP reproduction: measurements that verify why claims of the paper do not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.reproductions.irop.claims import IropRuns, View, above_optimum, energy, finite_mean, objective, slowdown
from poolwise.reproductions.irop.memory_time import MemoryTimeCase
from poolwise.reproductions.irop.plan import LOOSE, TENTH, THETAS, Grid
from poolwise.reproductions.irop.runs import FILLED_UP, HEEP_BY_MODULE, LARGEST_FIRST

WORKLOADS = 150


def switches(grid: Grid, runs: IropRuns) -> dict[str, dict[Key, Measured]]:
    """Return switch -> claim -> measurement with that switch alone, for the claims that each switch affects."""
    found: dict[str, dict[Key, Measured]] = {}
    strict = tuple(tolerance for tolerance in grid.tolerances if tolerance <= TENTH)
    some = tuple(eta for eta in grid.etas if eta > 0)
    for theta in THETAS:
        of: dict[str, dict[Key, Measured]] = {}
        heep = View(grid, runs, theta, {"heep": HEEP_BY_MODULE})
        of["HEEP by whole modules"] = energy(heep) | objective(heep)
        for name, tolerances in (("Delta 0.05 alone", strict[:1]), ("Delta up to 0.10", strict)):
            of[name] = slowdown(View(replace(grid, tolerances=tolerances), runs, theta), pooled=True)
        part = objective(View(replace(grid, tolerances=strict, etas=some), runs, theta))
        of["eta above 0, Delta up to 0.10"] = {key: value for key, value in part.items() if "least margin" in key[2]}
        for name, items in of.items():
            found.setdefault(name, {}).update(items)
    return found


def witness_rows(view: View) -> dict[Key, Measured]:
    """Measure the rows at the paper's size that verify causes, for one reading of theta."""
    theta = f"theta {view.theta}"
    strict = [t for t in view.grid.tolerances if t <= TENTH]
    at_delta = [np.abs(view.value("irop", "theta", t, 0.0) / (WORKLOADS * t) - 1).max() for t in strict]
    local = [np.abs(view.value(m, "theta", LOOSE, 0.0) / WORKLOADS).max() for m in ("cfm", "first-fit")]
    found = {
        ("Ours", f"eta 0, Delta up to 0.10, {theta}", "largest distance of IRoP's mean theta from Delta"): Measured(
            float(max(at_delta))
        ),
        ("Ours", f"eta 0, {theta}", "largest mean theta of CFM and first fit"): Measured(float(max(local))),
    }
    loose = f"Delta above 0.20, eta 1, {theta}"
    irop, heep, other, largest = (
        view.value(method, "energy", LOOSE, 1.0) for method in ("irop", "heep", HEEP_BY_MODULE, LARGEST_FIRST)
    )
    by_module = finite_mean(100 * (irop / other - irop / heep))
    found["Ours", loose, "reduction of energy against HEEP less that against HEEP by whole modules"] = by_module
    found["Ours", loose, "energy of IRoP less with large workloads rounded first"] = finite_mean(100 * (1 - largest / irop))
    used = view.value("heep", "memory_used", LOOSE, 1.0) - view.value("irop", "memory_used", LOOSE, 1.0)
    found["Ours", loose, "local memory in use under HEEP less under IRoP"] = finite_mean(100 * used)
    found["Ours", loose, "cores in use under HEEP"] = finite_mean(100 * view.value("heep", "cores_used", LOOSE, 1.0))
    return found


def optimum_witness_rows(view: View) -> dict[Key, Measured]:
    """Measure the rows of the comparison with OPT that verify causes, for one reading of theta."""
    small = f"30 x 30, theta {view.theta}"
    found = {("Ours", small, "slowdown of IRoP above OPT, counted as theta alone"): above_optimum(view, "irop", "theta")}
    filled = above_optimum(view, FILLED_UP, "completion")
    found["Ours", small, "slowdown of IRoP above OPT, local memory filled up"] = filled
    plain = above_optimum(view, "irop", "completion")
    fall = Measured(plain.value - filled.value, note=plain.note)
    found["Ours", small, "slowdown of IRoP above OPT less that with local memory filled up"] = fall
    by_order, by_size = (above_optimum(view, method, "energy").value for method in ("irop", LARGEST_FIRST))
    rounded = Measured(by_order - by_size, note=plain.note)
    found["Ours", small, "energy of IRoP above OPT less that with large workloads rounded first"] = rounded
    return found


def against_memory_time(view: View, memory_time: Mapping[MemoryTimeCase, Any]) -> dict[Key, Measured]:
    """Measure the reduction of the completion ratio against CFM as this paper describes it, over all accepted slowdowns."""
    cfm = np.array([memory_time[MemoryTimeCase(seed)]["completion"] for seed in range(view.grid.seeds)])
    found = np.array([100 * (1 - view.value("irop", "completion", t, 0.0) / cfm) for t in view.grid.tolerances])
    condition, metric = f"eta 0, theta {view.theta}", "reduction of the completion ratio against CFM by memory times time"
    return {
        ("Ours", condition, f"greatest {metric}"): Measured(float(found.max())),
        ("Ours", condition, f"mean {metric}"): finite_mean(found.mean(axis=0)),
        ("Ours", condition, f"least {metric}"): Measured(float(found.min())),
    }
