"""Report of a comparison: the metrics of all runs, significant differences, and the jobs that changed most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.sentences import (
    GOAL,
    TODAY,
    bounds_text,
    change_text,
    difference_sentence,
    population_sentence,
    value_text,
)
from poolwise.metrics import metrics_of
from poolwise.metrics.slowdown import bounded_slowdown, wait_s
from poolwise.presentation.answer import Answer
from poolwise.presentation.figure import Axis, Distribution, Figure
from poolwise.presentation.table import RowMark, Table
from poolwise.quantities import format_time, shared_time_unit
from poolwise.report.run_parts import slowdown_tail

_MARKS: Mapping[str, RowMark] = {"better": "true", "worse": "false"}


def comparison_answer(comparison: Comparison, changed: int, provenance: Mapping[str, object]) -> Answer:
    """Return the answer of a comparison, with the `changed` jobs per run and direction whose wait changed most."""
    requested = metrics_of(comparison.measures)
    main = [name for name in comparison.described if name in TODAY or name.partition(".")[0] in requested]
    return Answer(
        title=f"Comparison of {len(comparison.runs)} runs",
        headline=headline(comparison),
        because=[difference_sentence(comparison, d) for d in comparison.differences if d.metric == GOAL],
        figures=_figures(comparison),
        head=[
            _differences(comparison, "Differences", main),
            *([_changed(comparison, changed)] if comparison.changed(changed) else []),
        ],
        tables=[_differences(comparison, "All metrics", [*comparison.described])],
        candidates=comparison.frame(),
        content=comparison.to_dict(changed),
        provenance=provenance,
    )


def headline(comparison: Comparison) -> str:
    """Name the run with the lowest mean bounded slowdown, and state whether the difference is significant."""
    values = [float(metrics[GOAL].mean()) for metrics in comparison.metrics]
    best = int(np.argmin(values))
    if best == 0:
        rest = [d for d in comparison.differences if d.metric == GOAL]
        significant = all(d.verdict == "worse" for d in rest)
        text = "every difference is significant" if significant else "not every difference is significant"
        return f"{comparison.labels[0]} has the lowest mean bounded slowdown; {text}."
    verdict = next(d.verdict for d in comparison.differences if d.metric == GOAL and d.run == best)
    text = "is significant" if verdict == "better" else "is not significant"
    return f"{comparison.labels[best]} has the lowest mean bounded slowdown; its difference from {comparison.labels[0]} {text}."


def _differences(comparison: Comparison, title: str, names: Sequence[str]) -> Table:
    """Return some metrics, one row per metric and run; units other than those of times and fractions follow the metric."""
    rows, marks = list[list[str]](), dict[int, RowMark]()
    for name in names:
        description, unit, *_ = comparison.described[name]
        if unit not in ("", "s", "fraction"):
            description, unit = f"{description} ({unit})", ""
        rows.append(
            [description, comparison.labels[0], value_text(float(comparison.metrics[0][name].mean()), unit), "", "", ""]
        )
        for d in (d for d in comparison.differences if d.metric == name):
            certain = d.interval.low == d.interval.low  # not NaN
            bounds = bounds_text(d.interval, unit) if certain else ""
            change = change_text(d.interval.mean, unit)
            marks[len(rows)] = _MARKS.get(d.verdict, "")
            rows.append(["", comparison.labels[d.run], value_text(d.value, unit), change, bounds, d.verdict])
    note = f"Differences from {comparison.labels[0]}; intervals: {comparison.interval_of}. {population_sentence(comparison)}"
    return Table(title, ["metric", "run", "value", "difference", "95 % interval", "verdict"], rows, note, marks=marks)


def _changed(comparison: Comparison, count: int) -> Table:
    rows = [
        [comparison.labels[job.run], str(job.id), f"{job.nodes:,}", *map(format_time, (job.runtime_s, job.first_wait_s)),
         format_time(job.wait_s), f"{'+' if job.change_s > 0 else '-'}{format_time(abs(job.change_s))}"]
        for job in comparison.changed(count)
    ]  # fmt: skip
    columns = ["run", "job", "nodes", "runtime", f"wait, {comparison.labels[0]}", "wait in the run", "change of the wait"]
    note = "" if comparison.same_jobs else "Each seed draws its own jobs; these are the jobs of the first seed."
    return Table("Jobs that changed most", columns, rows, note)


def _figures(comparison: Comparison) -> list[Figure]:
    seed = comparison.seeds[0]
    samples = {
        label: bounded_slowdown(run.outcomes[seed])[comparison.population(k, seed)]
        for k, (label, run) in enumerate(zip(comparison.labels, comparison.runs, strict=True))
    }
    waits = [wait_s(run.outcomes[seed])[comparison.population(k, seed)] for k, run in enumerate(comparison.runs)]
    differences = {label: waits[k] - waits[0] for k, label in enumerate(comparison.labels) if k}
    size, unit = shared_time_unit(max(float(np.abs(values).max(initial=0.0)) for values in differences.values()))
    changes = {label: values / size for label, values in differences.items()}
    change = Distribution(
        "change",
        f"Change of the wait compared with {comparison.labels[0]}",
        "Share of jobs whose wait changed by at most the value on the x axis; jobs to the left of 0 wait less.",
        changes,
        Axis(f"change of the wait ({unit})"),
        "jobs",
    )
    return [slowdown_tail(samples), change]
