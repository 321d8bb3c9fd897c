"""Report of a comparison: the metrics of all runs, significant differences, and the jobs that changed most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.sentences import GOAL, difference_sentence, population_sentence
from poolwise.metrics.slowdown import bounded_slowdown, wait_s
from poolwise.presentation.figure import Axis, Distribution, Figure
from poolwise.presentation.table import cell_text
from poolwise.report.page import Page, PageSection, PageTable, TableRow
from poolwise.report.page import write_page as write_page
from poolwise.units import format_time, shared_time_unit

_MARKS = {"better": "true", "worse": "false"}


def write_comparison(found: Comparison, changed: int, provenance: Mapping[str, object], path: Path) -> None:
    """Write the report of a comparison atomically, with `changed` jobs per run and direction."""
    write_page(comparison_page(found, changed, provenance), path)


def comparison_page(found: Comparison, changed: int, provenance: Mapping[str, object]) -> Page:
    """Assemble the report of a comparison."""
    return Page(
        title=f"Comparison of {len(found.runs)} runs",
        lead=headline(found),
        because=[difference_sentence(found, d) for d in found.differences if d.metric == GOAL],
        sections=[
            PageSection(f"{label} compared with {found.labels[0]}", lines)
            for k, label in enumerate(found.labels)
            if k and (lines := list(_significant(found, k)))
        ],
        notes=[f"Intervals (95 %): {found.interval_of}.", population_sentence(found)],
        figures=_figures(found),
        tables=[_metrics(found), _changed(found, changed)],
        provenance={name: str(value) for name, value in provenance.items()},
    )


def headline(found: Comparison) -> str:
    """Name the run with the lowest mean bounded slowdown, and state whether the difference is significant."""
    values = [float(metrics[GOAL].mean()) for metrics in found.metrics]
    best = int(np.argmin(values))
    if best == 0:
        rest = [d for d in found.differences if d.metric == GOAL]
        significant = all(d.verdict == "worse" for d in rest)
        text = "every difference is significant" if significant else "not every difference is significant"
        return f"{found.labels[0]} has the lowest mean bounded slowdown; {text}."
    verdict = next(d.verdict for d in found.differences if d.metric == GOAL and d.run == best)
    text = "is significant" if verdict == "better" else "is not significant"
    return f"{found.labels[best]} has the lowest mean bounded slowdown; its difference from {found.labels[0]} {text}."


def _significant(found: Comparison, k: int) -> Iterator[str]:
    for d in found.differences:
        if d.run == k and d.metric != GOAL and d.verdict in ("better", "worse", "changed"):
            yield difference_sentence(found, d)


def _metrics(found: Comparison) -> PageTable:
    differences = {(d.run, d.metric): d for d in found.differences}
    rows = []
    for name in found.metrics[0]:
        unit = found.described[name].unit
        cells = [
            f"{found.described[name].description} ({'%' if unit == 'fraction' else unit})"
            if unit
            else found.described[name].description
        ]
        cells += [cell_text(float(found.metrics[0][name].mean()), unit)]
        verdicts = []
        for k in range(1, len(found.runs)):
            d = differences[k, name]
            cells += [cell_text(d.value, unit), d.verdict]
            verdicts.append(d.verdict)
        mark = _MARKS.get(verdicts[0], "") if len(set(verdicts)) == 1 else ""
        rows.append(TableRow(cells, mark))
    header = ["metric", found.labels[0], *(name for label in found.labels[1:] for name in (label, "verdict"))]
    return PageTable(
        "Metrics of all runs", header, rows, "Means over the seeds; verdicts are relative to the first run, at the 95 % level."
    )


def _changed(found: Comparison, count: int) -> PageTable:
    rows = [
        TableRow([found.labels[job.run], str(job.id), f"{job.nodes:,}", *map(format_time, (job.runtime_s, job.first_wait_s)),
             format_time(job.wait_s), f"{'+' if job.change_s > 0 else '-'}{format_time(abs(job.change_s))}"])
        for job in found.changed(count)
    ]  # fmt: skip
    header = ["run", "job", "nodes", "runtime", f"wait, {found.labels[0]}", "wait in the run", "change of the wait"]
    caption = "" if found.same_jobs else "Each seed draws its own jobs; these are the jobs of the first seed."
    return PageTable("Jobs that changed most", header, rows, caption)


def _figures(found: Comparison) -> list[Figure]:
    seed = found.seeds[0]
    samples = {
        label: bounded_slowdown(run.outcomes[seed])[found.population(k, seed)]
        for k, (label, run) in enumerate(zip(found.labels, found.runs, strict=True))
    }
    waits = [wait_s(run.outcomes[seed])[found.population(k, seed)] for k, run in enumerate(found.runs)]
    differences = {label: waits[k] - waits[0] for k, label in enumerate(found.labels) if k}
    size, unit = shared_time_unit(max(float(np.abs(values).max(initial=0.0)) for values in differences.values()))
    changes = {label: values / size for label, values in differences.items()}
    tail = Distribution(
        "tail",
        "Distribution of slowdowns",
        "Share of jobs whose bounded slowdown exceeds the value on the x axis.",
        samples,
        Axis("bounded slowdown", log=True),
        "jobs with a higher slowdown",
        tail=True,
    )
    change = Distribution(
        "change",
        f"Change of the wait compared with {found.labels[0]}",
        "Share of jobs whose wait changed by at most the value on the x axis; jobs to the left of 0 wait less.",
        changes,
        Axis(f"change of the wait ({unit})"),
        "jobs",
    )
    return [tail, change]
