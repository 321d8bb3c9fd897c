"""Report of a study: the recommendation, the curves behind it, every result, and its provenance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from poolwise.catalog import PREFIX
from poolwise.comparison.compare import compare_with_today
from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.sentences import today_heading, today_sentences
from poolwise.metrics import METRICS
from poolwise.metrics.intervals import paired_block_bootstrap
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.presentation.answer import Answer
from poolwise.presentation.cost import cost_sentences
from poolwise.presentation.figure import Axis, Curves, Figure
from poolwise.presentation.table import Table, cell_text, with_unit
from poolwise.quantities import shared_time_unit
from poolwise.report import resources, sentences
from poolwise.report.decision_card import cost_of, resources_decision, study_decision
from poolwise.report.gantt import longest_wait
from poolwise.report.machine_drawing import machine_of_run
from poolwise.report.page import write_report
from poolwise.report.recommendation import ENOUGH, GOAL, Recommendation, answer, slowdowns
from poolwise.report.run_parts import (
    WAITS,
    compromise,
    compromise_over_sizes,
    memory_figures,
    occupancy,
    slowdown_tail,
    waits_by_group,
)
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.diagnostics import diagnostic_sentences
from poolwise.studies.notes import seed_text


def write_study_report(result: StudyResult, path: Path) -> None:
    """Write the report of a study atomically."""
    write_report(study_answer(result), path)


def study_answer(result: StudyResult, first: Sequence[str] | None = None) -> Answer:
    """Return the answer of a study, with the sentences to read `first`: by default, the diagnostics of its workload."""
    sweep = Sweep.of(result)
    choice = answer(result, sweep)
    sample = sweep.sample(GOAL, 0 if choice is None else choice.at)
    omitted = len(sweep.series) - len(sample.series)
    whole = Answer(
        title=result.study.title,
        headline="No answer: none of the jobs that every run can run has finished.",
        first=diagnostic_sentences(result.diagnostics()) if first is None else first,
        notes=[*result.notes(), *([sentences.sampled(sample, omitted)] if omitted else [])],
        figures=_size_figures(sample, choice),
        tables=[_results(result, sample, choice), _workload(result), _rejections(sweep), _metrics(result)],
        provenance={**result.provenance(), "seeds": seed_text(cell.seed for cell in result.cells)},
    )
    return _with_resources(whole if choice is None else _recommend(whole, result, sweep, sample, choice), result, sweep)


def _recommend(whole: Answer, result: StudyResult, sweep: Sweep, sample: Sweep, recommendation: Recommendation) -> Answer:
    """Add the recommendation to an answer; charts show a sample of the sweep."""
    cells = sweep.cells[recommendation.series, recommendation.at]
    changes, cost = changes_against_today(result), cost_of(result, cells[0])
    return replace(
        whole,
        headline=sentences.headline(recommendation, sweep),
        decision=study_decision(result, sweep, recommendation),
        cost=cost,
        because=[
            line for line in (sentences.separation(recommendation, sweep), *sentences.because(recommendation, sweep)) if line
        ],
        main=main_chart(result, sample, recommendation),
        sections={
            **({} if changes is None else {today_heading(changes): today_sentences(changes)}),
            "Cost": [] if cost is None else [*cost_sentences(cost), _FIXED],
            "Tradeoffs of the choice": sentences.tradeoffs(recommendation, sweep),
            "Certainty": sentences.certainty_sentences(recommendation, sweep, len(cells)),
        },
        figures=[*whole.figures, *_recommended_figures(result, sample, recommendation)],
        tables=[waits_by_group(result, cells[0]), *whole.tables],
    )


_FIXED = "The order and the size are chosen by slowdown, so they do not depend on prices."


def changes_against_today(result: StudyResult) -> Comparison | None:
    """Compare the answer with today; None if the study has no `[today]`, or if there is no answer."""
    sweep = Sweep.of(result)
    choice = answer(result, sweep) if result.study.today else None
    return None if choice is None else compare_with_today(result, sweep.cells[choice.series, choice.at])


def _with_resources(whole: Answer, result: StudyResult, sweep: Sweep) -> Answer:
    """If the resources of shared nodes were measured, replace the answer with one about machines and policies together."""
    ranked = resources.standings(result, sweep)
    if not ranked:
        return whole
    first = str(next(iter(result.study.vary.get("machine", ("",))))).removeprefix(PREFIX)
    tables, pooled = resources.by_tables(result, ranked), "mean_degradation" not in result.hidden_metrics
    columns = [name.replace("bounded_slowdown", "bounded_slowdown_local") for name in _COLUMNS]  # as in the answer
    results = _results(result, sweep, None, columns)
    rest = [table for table in whole.tables if table.title not in (WAITS, RESULTS)]
    return replace(
        whole,
        headline=resources.lead(ranked),
        decision=resources_decision(result, ranked, first),
        cost=cost_of(result, ranked[0].cells[0]),
        main=None,
        because=resources.because(ranked),
        sections={**_today_section(result, ranked[0].cells), **resources.sections(ranked, first, pooled)},
        figures=[*resources.figures(ranked), *(figure for figure in whole.figures if figure.name != "degradation_bins")],
        tables=[resources.table(ranked, pooled), *([] if tables is None else [tables]), results, *rest],
    )


def _today_section(result: StudyResult, cells: Sequence[CellResult]) -> dict[str, list[str]]:
    changes = compare_with_today(result, cells)
    return {} if changes is None else {today_heading(changes): today_sentences(changes)}


RESULTS = "All results"
"""Title of the table of all results."""

# Figures


_CURVES = (
    ("utilization", "Node utilization by size", "node utilization", False,
     "Share of the available node time that jobs used between the end of the warm-up and the last start."),
    ("throughput_per_100s", "Throughput by size", "throughput of jobs", False, "Jobs finished per 100 s in the same window."),
    ("discrimination_s", "Discrimination by size", "summed discrimination", True,
     "Wait of each job beyond its wait under FCFS without backfilling on the same machine, summed over the jobs that finished "
     "under both; lower is fairer."),
    ("throughput_per_memory_dollar_gain", "Throughput per memory dollar by size", "gain per memory dollar", False,
     "Jobs finished in the same window per dollar of installed memory, relative to the memory baseline."),
    ("mean_memory_utilization", "Memory in use by size", "memory in use", False,
     "Local and pool memory in use / installed memory, averaged over time."),
)  # fmt: skip


def _size_figures(sweep: Sweep, recommendation: Recommendation | None) -> list[Figure]:
    """Return metrics by size; empty for a single size."""
    if len(sweep.x) == 1:
        return []
    return [curve for curve in (_curve(sweep, recommendation, *metric) for metric in _CURVES) if curve is not None]


def _recommended_figures(result: StudyResult, sweep: Sweep, recommendation: Recommendation) -> Iterator[Figure]:
    """Yield figures at the recommended size, and of the recommended run."""
    samples = {}
    for series in sweep.series:
        for cell in sweep.cells.get((series, recommendation.at), ())[:1]:
            samples[series] = bounded_slowdown(result.outcomes(cell))[result.population(cell)]
    where, first = sweep.where(recommendation.at), sweep.cells[recommendation.series, recommendation.at][0]
    fronts = (compromise(result, sweep, recommendation.at, where), compromise_over_sizes(result, sweep))
    yield from (front for front in fronts if front is not None)
    yield slowdown_tail(samples, f"Distribution of slowdowns{where}")
    yield from occupancy(result, first, recommendation.series)
    yield from (drawn for drawn in (machine_of_run(result, first, where), longest_wait(result, first)) if drawn is not None)
    yield from memory_figures(result, sweep, recommendation)


def main_chart(result: StudyResult, sweep: Sweep, recommendation: Recommendation) -> Curves | None:
    """Return the main chart: mean bounded slowdown by size, with its intervals and target; None for a single size."""
    if len(sweep.x) < 2:
        return None
    spreads = [paired_block_bootstrap(slowdowns(result, sweep, recommendation.series, at)) for at in range(len(sweep.x))]
    series = {s: sweep.values(GOAL, s) for s in sweep.series}
    finite = [v for values in series.values() for v in values if math.isfinite(v)]
    chosen = recommendation.series
    return Curves(
        GOAL,
        f"Mean bounded slowdown by {sweep.noun.noun}",
        "Time from submission to end / runtime, averaged over the jobs that every run finished; lower is better. The band is "
        f"the 95 % interval of {chosen} (block bootstrap over the jobs). The dotted line marks the recommended size. The "
        f"dashed line marks the target: {100 * ENOUGH:.0f} % above the lowest value of the sizes that reject the fewest jobs.",
        x=sweep.x,
        series=series,
        x_axis=_size_axis(sweep),
        y_axis=Axis("mean bounded slowdown of jobs", log=min(finite) > 0),
        interval={chosen: ([spread.low for spread in spreads], [spread.high for spread in spreads])},
        highlight=sweep.x[recommendation.at],
        target=(recommendation.target, "target"),
        direct=True,
    )


def _size_axis(sweep: Sweep) -> Axis:
    label = f"{sweep.noun.noun} ({sweep.unit})" if sweep.unit else sweep.noun.noun
    return Axis(label, log=min(sweep.x) > 0, ticks={x: text.split()[0] for x, text in zip(sweep.x, sweep.labels, strict=True)})


def _curve(
    sweep: Sweep, recommendation: Recommendation | None, metric: str, title: str, label: str, log: bool, caption: str
) -> Curves | None:
    scale, unit = 1.0, METRICS[metric].unit
    series = {s: sweep.values(metric, s) for s in sweep.series}
    if unit == "s":
        size, unit = shared_time_unit(max((v for values in series.values() for v in values if math.isfinite(v)), default=0.0))
        scale = 1 / size
    elif unit == "fraction":
        scale, unit = 100.0, "%"
    series = {s: [scale * v for v in values] for s, values in series.items()}
    finite = [v for values in series.values() for v in values if math.isfinite(v)]
    if not finite:
        return None
    return Curves(
        metric,
        title,
        caption,
        x=sweep.x,
        series=series,
        x_axis=_size_axis(sweep),
        y_axis=Axis(f"{label} ({unit})" if unit else label, log=log and min(finite) > 0),
        highlight=sweep.x[recommendation.at] if recommendation else None,
    )


# Tables


_COLUMNS = (
    "mean_bounded_slowdown", "median_bounded_slowdown", "p99_bounded_slowdown", "mean_wait_s", "throughput_per_100s",
    "utilization", "mean_degradation", "discrimination_s", "discrimination_10pct_s",
)  # fmt: skip


def _results(
    result: StudyResult, sweep: Sweep, recommendation: Recommendation | None, standard: Sequence[str] = _COLUMNS
) -> Table:
    metrics = result.described
    columns = [*(name for name in standard if name not in result.hidden_metrics), *result.more_metrics]
    shown = [(at, series) for at in range(len(sweep.x)) for series in sweep.series if (series, at) in sweep.cells]
    rows = []
    for at, series in shown:
        values = (cell_text(sweep.value(name, series, at), metrics[name].unit) for name in columns)
        rows.append([*([sweep.labels[at]] if sweep.x_name else []), series, *values])
    labels = [with_unit(metrics[name].description, metrics[name].unit) for name in columns]
    header = [*([sweep.noun.noun] if sweep.x_name else []), "order", *labels]
    if recommendation is None:
        return Table(RESULTS, header, rows, "Means over seeds.")
    chosen = (
        shown.index((recommendation.at, recommendation.series)) if (recommendation.at, recommendation.series) in shown else None
    )
    return Table(RESULTS, header, rows, "Means over seeds. The recommended row is in bold.", chosen)


def _workload(result: StudyResult) -> Table:
    return Table("Configuration", ["", ""], result.description(), text=True)


_REJECTIONS = (
    "Jobs that never ran, by size; all metrics exclude them for every run, so that all runs are compared on the same jobs."
)


def _rejections(sweep: Sweep) -> Table:
    """Return a table of the jobs that never ran, by size."""
    rows = []
    for at, label in enumerate(sweep.labels):
        reasons: dict[str, int] = {}
        for cell in (cell for series in sweep.series for cell in sweep.cells.get((series, at), ())):
            for reason, count in cell.rejected.items():
                reasons[reason] = max(reasons.get(reason, 0), count)
        rows += [[label or "all runs", f"{count:,}", reason] for reason, count in sorted(reasons.items())]
    rows = rows or [["all runs", "0", "every job fits the empty machine"]]
    return Table("Rejected jobs", [sweep.noun.noun or "runs", "jobs", "reason"], rows, _REJECTIONS, text=True)


def _metrics(result: StudyResult) -> Table:
    rows = [
        [m.description, "%" if m.unit == "fraction" else m.unit, "" if m.better == "neither" else f"{m.better} is better", name]
        for name, m in result.described.items()
    ]
    return Table("Metrics", ["metric", "unit", "direction", "name in the results files"], rows, text=True)
