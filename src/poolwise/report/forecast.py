"""Page of a forecast: start times of waiting jobs with their intervals as a chart, and changes that would affect them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from poolwise.forecasting.answer import ForecastAnswer, JobForecast
from poolwise.report.page import Page, PageSection, PageTable, TableRow


def forecast_page(answer: ForecastAnswer, provenance: Mapping[str, object]) -> Page:
    """Assemble the page of a forecast."""
    first, *others = answer.start_sentences()
    figure = answer.figure()
    changes = answer.change_sentences()
    return Page(
        title="Start times of waiting jobs" if len(answer.jobs) != 1 else f"Start time of {answer.jobs[0].name}",
        lead=f"{first[0].upper()}{first[1:]}.",
        because=[f"Forecast at {answer.time_with_zone(0.0)} under {answer.policy}."],
        main=figure if any(_is_known(job) for job in answer.jobs) else None,
        sections=[
            PageSection(title, lines) for title, lines in (("Effect of changes", changes), ("Later jobs", others)) if lines
        ],
        notes=[f"{text[0].upper()}{text[1:]}." for text in answer.notes],
        tables=[_starts(answer)] if answer.jobs else [],
        provenance={name: str(value) for name, value in provenance.items()},
    )


def _is_known(job: JobForecast) -> bool:
    return math.isfinite(float(job.wait_s[2]))


def _starts(answer: ForecastAnswer) -> PageTable:
    """Return a table of all jobs, with the times before which they start with a chance of 10, 50 and 90 %."""
    requested = answer.by is not None
    header = ["job", "10 %", "50 %", "90 %", *(["chance of a start by the requested time"] if requested else [])]
    rows = [
        TableRow(
            [
                job.name,
                *(answer.clock(wait) if math.isfinite(wait) else "never" for wait in job.wait_s.tolist()),
                *([] if job.chance_by is None else [f"{100 * job.chance_by:.0f} %"]),
            ]
        )
        for job in answer.jobs
    ]
    return PageTable("All jobs", header, rows, "Times before which a job starts with the given chance.", text=True)
