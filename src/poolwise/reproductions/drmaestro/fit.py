"""Fit of the remote times to one setting of the paper, and predictions of the other three."""

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
"""Setting to which the remote times are fitted."""
PUBLISHED = dict(zip(SCENARIOS, (1.5057, 1.2688, 1.2098, 1.1188), strict=True))
"""Makespan of Firmament over that of DRMaestro (Tables 2 and 4)."""
METRIC = "makespan of Firmament / DRMaestro, remote times fitted on 4 machines, 128 jobs"


def run_as(change: str) -> str:
    """Return the change under which a fit runs; a factor that changes nothing is the run without a change."""
    return "" if FITS[change] == Change() else change


def _ratio(results: DrMaestroResults, scenario: DrMaestroScenario, change: str) -> FloatArray:
    """Return (n_seed,) makespans of Firmament over those of DRMaestro under a fitted change."""
    return results.ratio(scenario, "firmament", "drmaestro", change=run_as(change))


def chosen(results: DrMaestroResults) -> str:
    """Return the change whose makespan ratio is nearest to the published one of `FIT_ON`; empty if none was run."""
    if not any(case.change in FITS for case in results.cases):
        return ""
    ratios = {change: _ratio(results, FIT_ON, change) for change in FITS}
    errors = {change: abs(float(values.mean()) - PUBLISHED[FIT_ON]) for change, values in ratios.items() if len(values)}
    return min(errors, key=lambda change: errors[change]) if errors else ""


def measure_fit(results: DrMaestroResults) -> dict[Key, Measured]:
    """Return the makespan ratios of the fitted setting and of the predicted ones."""
    best = chosen(results)
    found = {s: _ratio(results, s, best) for s in SCENARIOS} if best else {}
    return {("Prediction", str(s), METRIC): mean(values) for s, values in found.items() if len(values)}


def tables(results: DrMaestroResults) -> Sequence[Table]:
    """Return the table of the calibration setting and the held-out settings."""
    best = chosen(results)
    if not best:
        return []
    rows = []
    for s in SCENARIOS:
        values = _ratio(results, s, best)
        if len(values):
            role = "calibrated on" if s == FIT_ON else "held out"
            rows.append((str(s), role, f"{PUBLISHED[s]:.3f}", f"{float(np.mean(values)):.3f}", str(len(values))))
    candidates = {change: _ratio(results, FIT_ON, change) for change in FITS}
    ratios = ", ".join(f"{change}: {float(values.mean()):.3f}" for change, values in candidates.items() if len(values))
    note = (
        f"Fitted: {best} (local times keep a mean of 75 s), the candidate nearest to the published ratio of {FIT_ON}. "
        f"Ratios of the candidates there: {ratios}."
    )
    header = ("setting", "role", "published Firmament / DRMaestro", "ours", "seeds")
    return [Table("Calibrated on one setting, predicted for three", header, rows, note)]
