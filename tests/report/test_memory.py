"""Figures of memory in the recommended run."""

import pytest

from poolwise.metrics.memory import degradation
from poolwise.report.recommendation import answer
from poolwise.report.run_parts import memory_figures
from poolwise.report.study import study_answer
from poolwise.report.sweep import Sweep
from poolwise.studies import StudyResult


def test_report_has_memory_figures(result: StudyResult) -> None:
    sweep = Sweep.of(result)
    recommendation = answer(result, sweep)
    assert recommendation is not None
    figures = {figure.name: figure for figure in memory_figures(result, sweep, recommendation)}
    assert set(figures) == {"memory_over_time", "memory_bins", "degradation_bins"}
    assert figures.keys() <= {figure.name for figure in study_answer(result).figures}
    for name in ("memory_bins", "degradation_bins"):
        (shares,) = figures[name].series.values()
        assert sum(shares) == pytest.approx(100) and len(figures[name].groups) == len(shares)
    cell = sweep.cells[recommendation.series, recommendation.at][0]
    lost = degradation(result.outcomes(cell))[result.population(cell)]
    (shares,) = figures["degradation_bins"].series.values()
    assert shares[0] == pytest.approx(100 * (lost < 0.05).mean())
    (values,) = figures["memory_over_time"].series.values()
    assert len(values) == len(figures["memory_over_time"].x) and 0 <= min(values) <= max(values) <= 100
