"""What is fitted to one setting of the paper, and what that predicts of the other three."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.presentation.table import Table
from poolwise.reproductions.drmaestro.cells import SCENARIOS, DrMaestroScenario
from poolwise.reproductions.drmaestro.changes import FITS, Change
from poolwise.reproductions.drmaestro.claims import DrMaestroResults, mean

FIT_ON = SCENARIOS[0]
"""The setting that the remote times are fitted to."""
PUBLISHED = dict(zip(SCENARIOS, (1.5057, 1.2688, 1.2098, 1.1188), strict=True))
"""Makespan of Firmament over that of DRMaestro (Tables 2 and 4)."""
METRIC = "makespan of Firmament / DRMaestro, remote times fitted on 4 machines, 128 jobs"


def run_as(change: str) -> str:
    """Name of the change that a fitted one is run under: one that changes nothing is the run without."""
    return "" if FITS[change] == Change() else change


def _ratio(results: DrMaestroResults, scenario: DrMaestroScenario, change: str) -> FloatArray:
    """(n_seed,) makespan of Firmament over DRMaestro's under a fitted change."""
    return results.ratio(scenario, "firmament", "drmaestro", change=run_as(change))


def chosen(results: DrMaestroResults) -> str:
    """Name of the change whose makespans come nearest to the published ratio of `FIT_ON`; empty if none was run."""
    if not any(case.change in FITS for case in results.cases):
        return ""
    ratios = {change: _ratio(results, FIT_ON, change) for change in FITS}
    apart = {change: abs(float(values.mean()) - PUBLISHED[FIT_ON]) for change, values in ratios.items() if len(values)}
    return min(apart, key=lambda change: apart[change]) if apart else ""


def measure_fit(results: DrMaestroResults) -> dict[Key, Measured]:
    """Measure the fitted setting and the predicted ones."""
    best = chosen(results)
    found = {s: _ratio(results, s, best) for s in SCENARIOS} if best else {}
    return {("Prediction", str(s), METRIC): mean(values) for s, values in found.items() if len(values)}


def tables(results: DrMaestroResults) -> Sequence[Table]:
    """Table of what was calibrated on and what is held out."""
    best = chosen(results)
    if not best:
        return []
    rows = []
    for s in SCENARIOS:
        values = _ratio(results, s, best)
        if len(values):
            role = "calibrated on" if s == FIT_ON else "held out"
            rows.append((str(s), role, f"{PUBLISHED[s]:.3f}", f"{float(np.mean(values)):.3f}", str(len(values))))
    tried = {change: _ratio(results, FIT_ON, change) for change in FITS}
    ratios = ", ".join(f"{change}: {float(values.mean()):.3f}" for change, values in tried.items() if len(values))
    note = (
        f"Fitted: {best} (local times stay at a mean of 75 s), the one nearest to the published ratio of {FIT_ON}. "
        f"Tried there: {ratios}."
    )
    header = ("setting", "role", "published Firmament / DRMaestro", "ours", "seeds")
    return [Table("Calibrated on one setting, predicted for three", header, rows, note)]
