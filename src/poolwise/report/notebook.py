"""Figures of results, for programs and notebooks: the same that reports show."""

from __future__ import annotations

from pathlib import Path

from poolwise.comparison.run_comparison import Comparison
from poolwise.plans.plan import PlanResult
from poolwise.presentation.figure import Figure
from poolwise.report.compare import comparison_page
from poolwise.report.figures import save
from poolwise.report.plan import plan_page
from poolwise.report.study import study_page
from poolwise.studies.results import StudyResult


def figures(result: StudyResult | PlanResult | Comparison) -> list[Figure]:
    """Figures of a study, a plan or a comparison, as plain data: titles, axes and series."""
    if isinstance(result, StudyResult):
        return [shown for shown, _ in study_page(result).charts]
    if isinstance(result, PlanResult):
        return [shown for shown, _ in plan_page(result).charts]
    return [shown for shown, _ in comparison_page(result, 0, {}).charts]


def save_figures(result: StudyResult | PlanResult | Comparison, folder: str | Path) -> list[Path]:
    """Write each figure as PNG, SVG and PDF into a folder, which is made; returns the paths."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    return [path for shown in figures(result) for path in save(shown, Path(folder))]
