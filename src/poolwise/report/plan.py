"""Report of a plan: the recommendation, the reasons, its certainty, and every simulated candidate."""

from __future__ import annotations

from pathlib import Path

from poolwise.plans.plan import CANDIDATES, Answer, PlanResult
from poolwise.report.page import Page, PageSection, PageTable, TableRow
from poolwise.report.page import write_page as write_page


def write_plan(result: PlanResult, path: Path) -> None:
    """Write the report of a plan atomically."""
    write_page(plan_page(result), path)


def plan_page(result: PlanResult) -> Page:
    """Assemble the report of a plan."""
    answer = result.answer
    return Page(
        title=result.plan.title,
        first=answer.first,
        lead=answer.headline,
        because=answer.because,
        card=None if answer.card is None else PageTable.of(answer.card),
        sections=[PageSection(heading, lines) for heading, lines in answer.sections.items() if lines],
        notes=answer.notes,
        main=answer.figures[0] if answer.figures else None,
        figures=answer.figures[1:],
        tables=_tables(answer),
        provenance={name: str(value) for name, value in result.provenance().items()},
    )


def _tables(answer: Answer) -> list[PageTable]:
    """Return the tables of the answer, and its candidates unless one of them is a table of candidates."""
    has_candidates = any(found.title == CANDIDATES for found in answer.tables)
    return [*map(PageTable.of, answer.tables), *([] if has_candidates else [_candidates(answer)])]


def _candidates(answer: Answer) -> PageTable:
    frame = answer.candidates
    rows = [
        TableRow([_format_cell(value) for value in values], "chosen" if k == answer.chosen else "")
        for k, values in enumerate(frame.iter_rows())
    ]
    caption = "All simulated candidates; the answer is in bold."
    return PageTable(CANDIDATES, [name.replace("_", " ").replace(".", " ") for name in frame.columns], rows, caption)


def _format_cell(value: object) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return "-" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
