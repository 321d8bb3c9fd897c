"""Report of a study: the recommendation, the curves behind it, every result, and its provenance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from poolwise.catalog import PREFIX
from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.sentences import today_heading, today_sentences
from poolwise.comparison.today import compare_with_today
from poolwise.metrics import METRICS
from poolwise.metrics.intervals import paired_block_bootstrap
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.presentation.cost import Cost, cost_sentences, cost_table, tornado
from poolwise.presentation.figure import Axis, Curves, Distribution, Figure
from poolwise.presentation.table import cell_text
from poolwise.report import resources, sentences
from poolwise.report.affected_jobs import TITLE as WAITS
from poolwise.report.affected_jobs import waits_by_group
from poolwise.report.answer import ENOUGH, GOAL, Recommendation, answer, slowdowns
from poolwise.report.compromise import compromise, compromise_over_sizes
from poolwise.report.cost import cost_of
from poolwise.report.decision_card import decision_card
from poolwise.report.gantt import longest_wait
from poolwise.report.machine_drawing import machine_of_run
from poolwise.report.memory import memory_figures
from poolwise.report.occupancy import occupancy
from poolwise.report.page import Page, PageSection, PageTable, TableRow
from poolwise.report.page import write_page as write_page
from poolwise.report.resources_card import resources_card
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.diagnostics import diagnostic_sentences
from poolwise.studies.notes import seed_text
from poolwise.units import shared_time_unit


def write_study_report(result: StudyResult, path: Path, first: Sequence[str] | None = None) -> None:
    """Write the report of a study atomically. `first` are sentences to read with the answer."""
    write_page(study_page(result, first), path)


def study_page(result: StudyResult, first: Sequence[str] | None = None) -> Page:
    """Assemble the report of a study; by default, diagnostics of its workload are the sentences to read with the answer."""
    sweep = Sweep.of(result)
    found = answer(result, sweep)
    sample = sweep.sample(GOAL, 0 if found is None else found.at)
    omitted = len(sweep.series) - len(sample.series)
    sections: list[PageSection] = []
    cost: Cost | None = None
    if found is not None:
        seeds = len(sweep.cells[found.series, found.at])
        changes = changes_against_today(result)
        cost = cost_of(result, sweep.cells[found.series, found.at][0])
        sections = [
            *([] if changes is None else [PageSection(today_heading(changes), today_sentences(changes))]),
            *([] if cost is None else [PageSection("Cost", [*cost_sentences(cost), _FIXED])]),
            PageSection("Tradeoffs of the choice", sentences.tradeoffs(found, sweep)),
            PageSection("Certainty", sentences.certainty_sentences(found, sweep, seeds)),
        ]
    waits = [] if found is None else [waits_by_group(result, sweep.cells[found.series, found.at][0])]
    bills = [] if cost is None else [PageTable.of(cost_table(cost))]
    price_effects = None if cost is None else tornado(cost)
    provenance = {**result.provenance(), "seeds": seed_text(cell.seed for cell in result.cells)}
    no_answer = "No answer: none of the jobs that every run can run has finished."
    page = Page(
        title=result.study.title,
        first=diagnostic_sentences(result.diagnostics()) if first is None else first,
        lead=sentences.headline(found, sweep) if found else no_answer,
        because=[line for line in (sentences.separation(found, sweep), *sentences.because(found, sweep)) if line]
        if found
        else (),
        card=decision_card(result, sweep, found) if found else None,
        main=main_chart(result, sample, found) if found else None,
        sections=sections,
        notes=[*result.notes(), *([sentences.sampled(sample, omitted)] if omitted else [])],
        figures=[*([] if price_effects is None else [price_effects]), *_figures(result, sample, found)],
        tables=[*bills, *waits, _results(result, sample, found), _workload(result), _rejections(sweep), _glossary(result)],
        provenance={name: str(value) for name, value in provenance.items()},
    )
    return _with_resources(page, result, sweep)


_FIXED = "The order and the size are chosen by slowdown, so they do not depend on prices."


def changes_against_today(result: StudyResult) -> Comparison | None:
    """Compare the answer with today; None if the study has no `[today]`, or if there is no answer."""
    sweep = Sweep.of(result)
    found = answer(result, sweep) if result.study.today else None
    return None if found is None else compare_with_today(result, sweep.cells[found.series, found.at])


def _with_resources(page: Page, result: StudyResult, sweep: Sweep) -> Page:
    """Replace the answer by that on machines and policies together, if the resources of shared nodes were measured."""
    ranked = resources.standings(result, sweep)
    if not ranked:
        return page
    first = str(next(iter(result.study.vary.get("machine", ("",))))).removeprefix(PREFIX)
    tables = resources.by_tables(result, ranked)
    columns = [name.replace("bounded_slowdown", "bounded_slowdown_local") for name in _COLUMNS]  # as in the answer
    results = _results(result, sweep, None, columns)
    rest = [found for found in page.tables if found.title not in (WAITS, RESULTS)]
    return replace(
        page,
        lead=resources.lead(ranked),
        card=resources_card(result, ranked, first),
        main=None,
        because=resources.because(ranked),
        sections=resources.sections(ranked, first),
        figures=[*resources.figures(ranked), *(figure for figure in page.figures if figure.name != "degradation_bins")],
        tables=[resources.table(ranked), *([] if tables is None else [tables]), results, *rest],
    )


RESULTS = "All results"
"""Title of the table of all results."""

# Figures


_CURVES = (
    ("utilization", "Node utilization by size", "node utilization", False,
     "Share of the available node time that jobs used between the end of the warm-up and the last start."),
    ("throughput_per_100s", "Throughput by size", "throughput of jobs", False, "Jobs finished per 100 s in the same window."),
    ("discrimination_s", "Discrimination by size", "total discrimination", True,
     "Waiting time, summed over jobs, beyond the wait of each under FCFS without backfilling on the same machine; lower is "
     "fairer."),
    ("throughput_per_memory_dollar_gain", "Throughput per memory dollar by size", "gain per memory dollar", False,
     "Jobs finished in the same window per dollar of installed memory, relative to the memory baseline."),
    ("mean_memory_utilization", "Memory in use by size", "memory in use", False,
     "Local and pool memory in use / installed memory, averaged over time."),
)  # fmt: skip


def _figures(result: StudyResult, sweep: Sweep, found: Recommendation | None) -> list[Figure]:
    figures: list[Figure] = []
    if len(sweep.x) > 1:
        figures += [c for c in (_curve(sweep, found, *curve) for curve in _CURVES) if c is not None]
    if found is not None:
        samples = {}
        for series in sweep.series:
            for cell in sweep.cells.get((series, found.at), ())[:1]:
                samples[series] = bounded_slowdown(result.outcomes(cell))[result.population(cell)]
        where = sweep.where(found.at)
        caption = "Share of jobs whose bounded slowdown exceeds the value on the x axis."
        x_axis = Axis("bounded slowdown", log=True)
        title = f"Distribution of slowdowns{where}"
        fronts = (compromise(result, sweep, found.at, where), compromise_over_sizes(result, sweep))
        figures += [front for front in fronts if front is not None]
        figures.append(Distribution("tail", title, caption, samples, x_axis, "jobs with a higher slowdown", tail=True))
        first = sweep.cells[found.series, found.at][0]
        figures += occupancy(result, first, found.series)
        drawings = (machine_of_run(result, first, where), longest_wait(result, first))
        figures += [drawn for drawn in drawings if drawn is not None]
        figures += memory_figures(result, sweep, found)
    return figures


def main_chart(result: StudyResult, sweep: Sweep, found: Recommendation) -> Curves | None:
    """Return the main chart: mean bounded slowdown by size, with its intervals and target; None for a single size."""
    if len(sweep.x) < 2:
        return None
    spreads = [paired_block_bootstrap(slowdowns(result, sweep, found.series, at)) for at in range(len(sweep.x))]
    series = {s: sweep.values(GOAL, s) for s in sweep.series}
    known = [v for values in series.values() for v in values if math.isfinite(v)]
    chosen = found.series
    return Curves(
        GOAL,
        f"Mean bounded slowdown by {sweep.noun.noun}",
        "Time from submission to end / runtime, averaged over the jobs that every run finished; lower is better. The band is "
        f"the 95 % interval of {chosen} (block bootstrap over the jobs). The dotted line marks the recommended size. The "
        f"dashed line marks the target: {100 * ENOUGH:.0f} % above the lowest value of the sizes that reject the fewest jobs.",
        x=sweep.x,
        series=series,
        x_axis=_size_axis(sweep),
        y_axis=Axis("mean bounded slowdown of jobs", log=min(known) > 0),
        interval={chosen: ([spread.low for spread in spreads], [spread.high for spread in spreads])},
        highlight=sweep.x[found.at],
        target=(found.target, "target"),
        direct=True,
    )


def _size_axis(sweep: Sweep) -> Axis:
    label = f"{sweep.noun.noun} ({sweep.unit})" if sweep.unit else sweep.noun.noun
    return Axis(label, log=min(sweep.x) > 0, ticks={x: text.split()[0] for x, text in zip(sweep.x, sweep.labels, strict=True)})


def _curve(
    sweep: Sweep, found: Recommendation | None, metric: str, title: str, label: str, log: bool, caption: str
) -> Curves | None:
    scale, unit = 1.0, METRICS[metric].unit
    series = {s: sweep.values(metric, s) for s in sweep.series}
    if unit == "s":
        size, unit = shared_time_unit(max((v for values in series.values() for v in values if math.isfinite(v)), default=0.0))
        scale = 1 / size
    elif unit == "fraction":
        scale, unit = 100.0, "%"
    series = {s: [scale * v for v in values] for s, values in series.items()}
    known = [v for values in series.values() for v in values if math.isfinite(v)]
    if not known:
        return None
    return Curves(
        metric,
        title,
        caption,
        x=sweep.x,
        series=series,
        x_axis=_size_axis(sweep),
        y_axis=Axis(f"{label} ({unit})" if unit else label, log=log and min(known) > 0),
        highlight=sweep.x[found.at] if found else None,
    )


# Tables


_COLUMNS = (
    "mean_bounded_slowdown", "median_bounded_slowdown", "p99_bounded_slowdown", "mean_wait_s", "throughput_per_100s",
    "utilization", "mean_degradation", "discrimination_s", "discrimination_10pct_s",
)  # fmt: skip


def _results(result: StudyResult, sweep: Sweep, found: Recommendation | None, standard: Sequence[str] = _COLUMNS) -> PageTable:
    rows, metrics, columns = [], result.described, (*standard, *result.more_metrics)
    for at, label in enumerate(sweep.labels):
        for series in sweep.series:
            if (series, at) in sweep.cells:
                cells = [
                    label,
                    series,
                    *(cell_text(sweep.value(name, series, at), metrics[name].unit) for name in columns),
                ]
                chosen = found is not None and (series, at) == (found.series, found.at)
                rows.append(TableRow(cells[0 if sweep.x_name else 1 :], "chosen" if chosen else ""))
    labels = [
        f"{metrics[n].description} ({_unit(metrics[n].unit)})" if metrics[n].unit else metrics[n].description for n in columns
    ]
    header = [*([sweep.noun.noun] if sweep.x_name else []), "order", *labels]
    caption = "Means over seeds." if found is None else "Means over seeds. The recommended row is in bold."
    return PageTable(RESULTS, header, rows, caption)


def _workload(result: StudyResult) -> PageTable:
    rows = [TableRow([name, value]) for name, value in result.description()]
    return PageTable("Configuration", ["", ""], rows, text=True)


_REJECTIONS = (
    "Jobs that never ran, by size; all metrics exclude them for every run, so that all runs are compared on the same jobs."
)


def _rejections(sweep: Sweep) -> PageTable:
    """Return a table of the jobs that never ran, by size."""
    rows = []
    for at, label in enumerate(sweep.labels):
        cells: list[CellResult] = [c for s in sweep.series for c in sweep.cells.get((s, at), ())]
        reasons: dict[str, int] = {}
        for cell in cells:
            for reason, count in cell.rejected.items():
                reasons[reason] = max(reasons.get(reason, 0), count)
        for reason, count in sorted(reasons.items()):
            rows.append(TableRow([label or "all runs", f"{count:,}", reason]))
    if not rows:
        rows = [TableRow(["all runs", "0", "every job fits the empty machine"])]
    return PageTable("Rejected jobs", [sweep.noun.noun or "runs", "jobs", "reason"], rows, _REJECTIONS, text=True)


def _glossary(result: StudyResult) -> PageTable:
    rows = [
        TableRow([m.description, _unit(m.unit), "" if m.better == "neither" else f"{m.better} is better", name])
        for name, m in result.described.items()
    ]
    return PageTable("Metrics", ["metric", "unit", "direction", "name in the results files"], rows, text=True)


def _unit(unit: str) -> str:
    return "%" if unit == "fraction" else unit
