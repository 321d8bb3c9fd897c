"""Report of a comparison: the metrics of all runs, significant differences, and the jobs that changed most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.sentences import GOAL, difference_sentence, population_sentence
from poolwise.metrics.slowdown import bounded_slowdown, wait_s
from poolwise.presentation.answer import Answer
from poolwise.presentation.figure import Axis, Distribution, Figure
from poolwise.presentation.table import RowMark, Table, cell_text, with_unit
from poolwise.report.run_parts import slowdown_tail
from poolwise.units import format_time, shared_time_unit

_MARKS: Mapping[str, RowMark] = {"better": "true", "worse": "false"}


def comparison_answer(found: Comparison, changed: int, provenance: Mapping[str, object]) -> Answer:
    """Return the answer of a comparison, with the `changed` jobs per run and direction whose wait changed most."""
    return Answer(
        title=f"Comparison of {len(found.runs)} runs",
        headline=headline(found),
        because=[difference_sentence(found, d) for d in found.differences if d.metric == GOAL],
        sections={
            f"{label} compared with {found.labels[0]}": list(_significant(found, k))
            for k, label in enumerate(found.labels)
            if k
        },
        notes=[f"Intervals (95 %): {found.interval_of}.", population_sentence(found)],
        figures=_figures(found),
        tables=[_metrics(found), _changed(found, changed)],
        candidates=found.frame(),
        content=found.to_dict(changed),
        provenance=provenance,
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


def _metrics(found: Comparison) -> Table:
    differences = {(d.run, d.metric): d for d in found.differences}
    rows, marks = [], {}
    for row, name in enumerate(found.metrics[0]):
        description, unit, *_ = found.described[name]
        others = [differences[k, name] for k in range(1, len(found.runs))]
        if len({d.verdict for d in others}) == 1:
            marks[row] = _MARKS.get(others[0].verdict, "")
        first = cell_text(float(found.metrics[0][name].mean()), unit)
        values = [text for d in others for text in (cell_text(d.value, unit), d.verdict)]
        rows.append([with_unit(description, unit), first, *values])
    columns = ["metric", found.labels[0], *(name for label in found.labels[1:] for name in (label, "verdict"))]
    note = "Means over the seeds; verdicts are relative to the first run, at the 95 % level."
    return Table("Metrics of all runs", columns, rows, note, marks=marks)


def _changed(found: Comparison, count: int) -> Table:
    rows = [
        [found.labels[job.run], str(job.id), f"{job.nodes:,}", *map(format_time, (job.runtime_s, job.first_wait_s)),
         format_time(job.wait_s), f"{'+' if job.change_s > 0 else '-'}{format_time(abs(job.change_s))}"]
        for job in found.changed(count)
    ]  # fmt: skip
    columns = ["run", "job", "nodes", "runtime", f"wait, {found.labels[0]}", "wait in the run", "change of the wait"]
    note = "" if found.same_jobs else "Each seed draws its own jobs; these are the jobs of the first seed."
    return Table("Jobs that changed most", columns, rows, note)


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
    change = Distribution(
        "change",
        f"Change of the wait compared with {found.labels[0]}",
        "Share of jobs whose wait changed by at most the value on the x axis; jobs to the left of 0 wait less.",
        changes,
        Axis(f"change of the wait ({unit})"),
        "jobs",
    )
    return [slowdown_tail(samples), change]
