"""Answer of a dispatch plan, from the runs of orders and placements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from poolwise.comparison.ranking import CandidateRanking, State
from poolwise.hashing import Json
from poolwise.metrics import Interval, mean_interval
from poolwise.optimize.monotone import Element
from poolwise.plans.dispatch_file import DispatchSection
from poolwise.plans.units import MeasuredUnits, UnitStudy, microseconds, placement_name, seeds_note
from poolwise.presentation.answer import Answer, Certainty, DecisionCard
from poolwise.presentation.figure import Axis, Bars, Figure
from poolwise.presentation.format import (
    energy_unit,
    format_energy,
    format_number,
    humanize_name,
    latency_name,
    latency_unit,
    order_name,
    rows_note,
    sentence_case,
)

VALUES = ("latency_us", "missed_pct", "utilization", "energy_j", "makespan_us")


@dataclass(frozen=True, eq=False)
class _Measured(MeasuredUnits):
    """Pairs of an order and a placement, the lowest latency first; the columns of `values` are those of `VALUES`.

    Attributes
    ----------
    section : [plan]
    runs : records of each candidate, one per seed
    """

    section: DispatchSection
    runs: tuple[Sequence[Json], ...]

    def state(self, k: int) -> State:
        """Return whether the mean of a candidate over the seeds meets the target."""
        target = self.section.target
        return "keeps" if target is None or float(self.means[k, 1]) <= target.missed else "breaks"

    def order(self, k: int) -> str:
        """Return the name of a candidate's order."""
        return str(self.section.order[self.elements[k][0]])

    def placement(self, k: int) -> str:
        """Return the name of a candidate's placement."""
        return str(self.section.placement[self.elements[k][1]])

    def label(self, k: int) -> str:
        """Return the placement of a candidate, and its order if the plan has several."""
        several = len(self.section.order) > 1
        return f'"{humanize_name(self.placement(k))}"' + (f" in the order {order_name(self.order(k))}" if several else "")


def dispatch_answer(section: DispatchSection, study: UnitStudy, runs: Mapping[Element, Sequence[Json]]) -> Answer:
    """Combine the runs of each candidate, one per seed, into an answer."""
    measured = _measure(section, runs)
    candidates = range(len(measured.elements))
    ranking = CandidateRanking.of(candidates, measured.state, lambda k: float(measured.means[k, 0]))
    best, rival, read = ranking.best, ranking.runner_up, measured.runs[0][0]["read"]
    content: Json = {
        "latency": f"{section.latency} of the jobs' latency, us",
        "candidates": [_candidate(measured, k) for k in candidates],
        **read,
    }
    notes = [rows_note(count, verb, why) for name, verb in _COUNTED for why, count in sorted(read[name].items())]
    return ranking.answer(
        candidates,
        _frame(measured),
        partial(_candidate, measured),
        content,
        _figures(measured, best),
        headline=_headline(measured, best, rival),
        because=list(_because(measured, best, rival)),
        sections={"By stream": list(_streams(measured, best))},
        notes=notes,
        inputs=study.inputs(keys=True),
        seeds=list(range(section.seeds)),
        decision=None if best is None else _decision(measured, best, rival),
    )


_COUNTED = (("excluded", "excluded from the trace"), ("repaired", "repaired while reading"))


def _measure(section: DispatchSection, runs: Mapping[Element, Sequence[Json]]) -> _Measured:
    rows = [[[run[name] for name in VALUES] for run in each] for each in runs.values()]
    values, pairs = np.array(rows, dtype=np.float64), list(runs)  # None becomes NaN
    means = values.mean(axis=1)
    order = sorted(range(len(pairs)), key=lambda k: (float(means[k, 0]), float(np.nan_to_num(means[k, 1])), pairs[k]))
    return _Measured(tuple(pairs[k] for k in order), values[order], section, tuple(runs[pairs[k]] for k in order))


# Sentences


def _headline(measured: _Measured, best: int | None, rival: int | None) -> str:
    if best is None:
        return "No order and placement meets the target for missed deadlines."
    alike = f" or {measured.label(rival)}" if rival is not None and _slower(measured, best, rival).low <= 0 else ""
    return f"Place jobs with {measured.label(best)}{alike}."


def _slower(measured: _Measured, best: int, rival: int) -> Interval:
    """Return by how much the latency of the runner-up exceeds that of the answer (us), paired by seed."""
    return mean_interval(measured.values[rival, :, 0] - measured.values[best, :, 0])


def _certainty(more: Interval) -> Certainty:
    if more.n < 2:
        return Certainty("unknown", samples=1, over="seeds", remark="unknown (one seed)")
    if more.low > 0:
        return Certainty("better", more.level, more.n, "seeds", (more.low, more.high), better_than="the runner-up")
    return Certainty("alike", more.level, more.n, "seeds", (more.low, more.high), alike="the runner-up")


def _decision(measured: _Measured, best: int, rival: int | None) -> DecisionCard:
    """Summarize the answer and the runner-up."""
    section = measured.section
    shown = [best, *([] if rival is None else [rival])]
    choice = [
        ["Queue order", *(order_name(measured.order(k)) for k in shown)],
        ["Placement", *(placement_name(section, measured.elements[k]) for k in shown)],
    ]
    means = measured.means[shown]
    of = "" if section.of is None else f" of {section.of}"
    effects = [[sentence_case(f"{latency_name(section.latency)}{of}"), *map(microseconds, means[:, 0])]]
    if not np.isnan(means[:, 1]).any():
        target = "" if section.target is None else f" (target: at most {section.target.missed:g} %)"
        missed = (f"{format_number(value)} %" for value in means[:, 1].tolist())
        effects.append([f"Deadlines missed{_counted(section)}{target}", *missed])
    effects.append(["Utilization of units", *(f"{format_number(100 * value)} %" for value in means[:, 2].tolist())])
    if not np.isnan(means[:, 3]).any():
        effects.append(["Energy", *map(format_energy, means[:, 3].tolist())])
    certainty = None if rival is None else _certainty(_slower(measured, best, rival))
    return DecisionCard(choice, effects, certainty, "" if rival is None else "runner-up", seeds_note(section.seeds))


def _counted(section: DispatchSection) -> str:
    """Name the streams whose deadlines count, unless all do."""
    chosen = [] if section.target is None or not section.target.of else section.target.of
    return f" of {' and '.join(chosen)}" if chosen else ""


def _because(measured: _Measured, best: int | None, rival: int | None) -> Iterator[str]:
    target = measured.section.target
    if best is not None:
        of = _counted(measured.section)
        among = f" of those that miss at most {target.missed:g} % of the deadlines{of}" if target is not None else ""
        yield f"It has the lowest latency{among}: {_describe(measured, best)}."
    if best is not None and rival is not None:
        slower = _difference(_slower(measured, best, rival))
        yield f"The runner-up, {measured.label(rival)}: {_describe(measured, rival)}. {slower}"
    if best != 0:
        yield f"The fastest of all, {measured.label(0)}, misses too many deadlines: {_describe(measured, 0)}."
    seeds = measured.section.seeds
    if seeds > 1:
        yield f"Means over {seeds} seeds, the same for all candidates."
    slow = [measured.label(k) for k in range(len(measured.elements)) if measured.runs[k][0]["engine"] == "reference"]
    if slow:
        yield f"The reference engine ran {', '.join(slow)}, which no compiled kernel supports."


def _describe(measured: _Measured, k: int) -> str:
    latency, missed, use, energy, _ = measured.means[k].tolist()
    section = measured.section
    words = [f"{latency_name(section.latency)} {microseconds(latency)}{'' if section.of is None else f' of {section.of}'}"]
    words += [] if np.isnan(missed) else [f"{missed:.3g} % of deadlines missed"]
    words += [f"{100 * use:.3g} % utilization"] + ([] if np.isnan(energy) else [format_energy(energy)])
    return ", ".join(words)


def _difference(more: Interval) -> str:
    """Describe the difference in latency from the runner-up."""
    if more.n < 2:
        return "With one seed, the certainty of the difference is unknown."
    text = f"Its latency is {microseconds(more.mean)} higher [{microseconds(more.low)} to {microseconds(more.high)}]"
    return f"{text}." if more.low > 0 else f"{text}: not distinguishable with these seeds."


def _streams(measured: _Measured, best: int | None) -> Iterator[str]:
    """Describe each stream under the answer or, without an answer, under the fastest candidate."""
    shown = 0 if best is None else best
    for stream in measured.section.stream:
        each = _stream(measured, shown, stream.name)
        missed = "" if each["missed_pct"] is None else f", {each['missed_pct']:.3g} % of deadlines missed"
        median, p99 = (microseconds(each[name]) for name in ("p50_us", "p99_us"))
        yield f"{stream.name} under {measured.label(shown)}: median {median}, p99 {p99}{missed}."


# Rows, plain data, figures


def _stream(measured: _Measured, k: int, name: str) -> Json:
    """Return the means of a stream's measurements over the seeds."""
    each = [run["streams"][name] for run in measured.runs[k]]
    return {key: None if each[0][key] is None else float(np.mean([run[key] for run in each])) for key in each[0]}


def _candidate(measured: _Measured, k: int) -> Json:
    section, types = measured.section, measured.runs[k][0]["by_type"]
    values = {name: None if np.isnan(value) else value for name, value in zip(VALUES, measured.means[k].tolist(), strict=True)}
    return {
        "order": measured.order(k),
        "placement": measured.placement(k),
        **values,
        "by_type": {name: float(np.mean([run["by_type"][name] for run in measured.runs[k]])) for name in types},
        "streams": {stream.name: _stream(measured, k, stream.name) for stream in section.stream},
        "verdict": measured.state(k),
        "engine": measured.runs[k][0]["engine"],
    }


def _frame(measured: _Measured) -> pl.DataFrame:
    rows = [_candidate(measured, k) for k in range(len(measured.elements))]
    columns: dict[str, list[object]] = {name: [row[name] for row in rows] for name in ("order", "placement")}
    columns |= {name: [row[name] for row in rows] for name in VALUES}
    columns |= {f"utilization_{name}": [row["by_type"][name] for row in rows] for name in rows[0]["by_type"]}
    for stream in measured.section.stream:
        for key in ("p50_us", "p99_us", "missed_pct"):
            columns[f"{stream.name}_{key}"] = [row["streams"][stream.name][key] for row in rows]
    columns["verdict"] = [row["verdict"] for row in rows]
    undefined = [name for name, values in columns.items() if all(value is None for value in values)]
    return pl.DataFrame({name: values for name, values in columns.items() if name not in undefined})


def _figures(measured: _Measured, best: int | None) -> list[Figure]:
    section = measured.section
    of = "" if section.of is None else f" of {section.of}"
    caption = f"Means over {section.seeds} seed{'s' if section.seeds > 1 else ''}; lower is better."
    unit, size = latency_unit(float(measured.means[:, 0].max()))
    latency = f"{latency_name(section.latency)}{of} ({unit})"
    figures: list[Figure] = [_bars(measured, 0, "latency", "Latency by placement and order", caption, latency, size)]
    if not np.isnan(measured.values[:, :, 1]).any():
        label = "deadlines missed (%)"
        figures.append(_bars(measured, 1, "missed", "Deadlines missed by placement and order", caption, label))
    if not np.isnan(measured.values[:, :, 3]).any():
        unit, size = energy_unit(float(np.nanmax(measured.means[:, 3])))
        title, caption = "Energy by placement and order", f"{caption} Idle units are included."
        figures.append(_bars(measured, 3, "energy", title, caption, f"energy ({unit})", size))
    return [*figures, _utilization(measured, best or 0)]


def _utilization(measured: _Measured, best: int) -> Bars:
    """Return one group of bars per placement under the answer's queue order, with one bar per unit type."""
    section, chosen = measured.section, measured.elements[best][0]
    rows = [_candidate(measured, measured.elements.index((chosen, p))) for p in range(len(section.placement))]
    under = f" in the order {order_name(measured.order(best))}" if len(section.order) > 1 else ""
    return Bars(
        "utilization",
        f"Utilization by unit type{under}",
        "Busy share of the time from the first arrival to the last end.",
        groups=[humanize_name(row["placement"]) for row in rows],
        series={name: [100 * row["by_type"][name] for row in rows] for name in rows[0]["by_type"]},
        y_axis=Axis("utilization (%)"),
    )


def _bars(measured: _Measured, column: int, name: str, title: str, caption: str, label: str, size: float = 1.0) -> Bars:
    """Return one group of bars per placement, with one bar per order; values are divided by `size`."""
    section, at = measured.section, {pair: k for k, pair in enumerate(measured.elements)}
    series = {
        order_name(str(order)): [float(measured.means[at[o, p], column]) / size for p in range(len(section.placement))]
        for o, order in enumerate(section.order)
    }
    groups = [humanize_name(str(choice)) for choice in section.placement]
    return Bars(name, title, caption, groups=groups, series=series, y_axis=Axis(label))
