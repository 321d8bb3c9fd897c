"""From the runs of orders and placements to the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from poolwise.arrays import FloatArray
from poolwise.hashing import Json
from poolwise.metrics import Interval, mean_interval
from poolwise.plans.dispatch_file import DispatchSection
from poolwise.plans.dispatch_tasks import DispatchTaskType
from poolwise.plans.plan import Answer
from poolwise.presentation.figure import Axis, Bars, Figure
from poolwise.presentation.format import (
    energy_unit,
    in_words,
    latency_name,
    latency_unit,
    order_name,
    sentence_case,
    spoken_energy,
    spoken_number,
)
from poolwise.presentation.table import Table
from poolwise.units import format_time

Pair = tuple[int, int]
"""An order and a placement, by their numbers in the plan."""
VALUES = ("latency_us", "missed_pct", "utilization", "energy_j", "makespan_us")


@dataclass(frozen=True, eq=False)
class _Measured:
    """Candidates, the least latency first.

    Attributes
    ----------
    pairs : n candidates
    runs : their runs, one a seed
    values : (n, n_seed, 5) as `VALUES`; NaN where something is not defined
    """

    bench: DispatchTaskType
    pairs: tuple[Pair, ...]
    runs: tuple[Sequence[Json], ...]
    values: FloatArray

    @property
    def means(self) -> FloatArray:
        """(n, 5) means over the seeds."""
        means: FloatArray = self.values.mean(axis=1)
        return means

    def keeps(self, k: int) -> bool:
        """Whether a candidate keeps the target in the mean over the seeds."""
        target = self.bench.section.target
        return target is None or float(self.means[k, 1]) <= target.missed

    def order(self, k: int) -> str:
        """Name of a candidate's order."""
        return str(self.bench.section.order[self.pairs[k][0]])

    def placement(self, k: int) -> str:
        """Name of a candidate's placement."""
        return str(self.bench.section.placement[self.pairs[k][1]])

    def label(self, k: int) -> str:
        """A candidate in words."""
        many = len(self.bench.section.order) > 1
        return f'"{in_words(self.placement(k))}"' + (f" in the order {order_name(self.order(k))}" if many else "")


def dispatch_answer(bench: DispatchTaskType, runs: Mapping[Pair, Sequence[Json]]) -> Answer:
    """Put the answer together; `runs` are those of each candidate, one a seed."""
    found = _measure(bench, runs)
    keeping = [k for k in range(len(found.pairs)) if found.keeps(k)]
    best = keeping[0] if keeping else None
    rival = keeping[1] if len(keeping) > 1 else None
    read = found.runs[0][0]["read"]
    content: Json = {
        "latency": f"{bench.section.latency} of the jobs' latency, us",
        "chosen": None if best is None else _candidate(found, best),
        "runner_up": None if rival is None else _candidate(found, rival),
        "candidates": [_candidate(found, k) for k in range(len(found.pairs))],
        **read,
    }
    said = [f"{count:,} rows were {verb}: {why}." for what, verb in _COUNTED for why, count in sorted(read[what].items())]
    return Answer(
        status="decided" if best is not None else "infeasible",
        headline=_headline(found, best, rival),
        because=list(_because(found, best, rival)),
        sections={"By stream": list(_streams(found, best))},
        notes=said,
        figures=_figures(found, best),
        candidates=_frame(found),
        chosen=best,
        content=content,
        inputs=bench.sha256,
        seeds=list(range(bench.section.seeds)),
        card=None if best is None else _card(found, best, rival),
    )


_COUNTED = (("excluded", "left out of the trace"), ("repaired", "changed while reading"))


def _measure(bench: DispatchTaskType, runs: Mapping[Pair, Sequence[Json]]) -> _Measured:
    rows = [[[_value(run[name]) for name in VALUES] for run in each] for each in runs.values()]
    values, pairs = np.array(rows, dtype=np.float64), list(runs)
    means = values.mean(axis=1)
    order = sorted(range(len(pairs)), key=lambda k: (float(means[k, 0]), float(np.nan_to_num(means[k, 1])), pairs[k]))
    return _Measured(bench, tuple(pairs[k] for k in order), tuple(runs[pairs[k]] for k in order), values[order])


def _value(value: float | None) -> float:
    return np.nan if value is None else value


# Sentences


def _headline(found: _Measured, best: int | None, rival: int | None) -> str:
    if best is None:
        return "No order and placement keeps the deadlines."
    alike = rival is not None and _apart(found, best, rival) is False
    return f"Place jobs by {found.label(best)}{f' or {found.label(rival)}' if alike and rival is not None else ''}."


def _apart(found: _Measured, best: int, rival: int) -> bool | None:
    """Whether the seeds tell the two apart, in pairs of runs of one seed; None with one seed."""
    more = mean_interval(found.values[rival, :, 0] - found.values[best, :, 0])
    return None if more.n < 2 else more.low > 0


def _card(found: _Measured, best: int, rival: int | None) -> Table:
    """The answer at a glance, the runner-up beside it."""
    section = found.bench.section
    shown = [best, *([] if rival is None else [rival])]
    rows = [
        ["Queue order", *(order_name(found.order(k)) for k in shown)],
        ["Placement", *(in_words(found.placement(k)) for k in shown)],
    ]
    if rival is not None:
        sure = {
            True: "told from the runner-up (95 %)",
            False: "not told from the runner-up (95 %)",
            None: "not known: one seed",
        }
        rows.append(["How sure that is", sure[_apart(found, best, rival)], ""])
    means = found.means[shown]
    of = "" if section.of is None else f" of {section.of}"
    rows.append([sentence_case(f"{latency_name(section.latency)}{of}"), *map(_time, means[:, 0])])
    if not np.isnan(means[:, 1]).any():
        target = "" if section.target is None else f" (target: at most {section.target.missed:g} %)"
        rows.append(
            [f"Deadlines missed{_counted(section)}{target}", *(f"{spoken_number(value)} %" for value in means[:, 1].tolist())]
        )
    rows.append(["Units busy", *(f"{spoken_number(100 * value)} %" for value in means[:, 2].tolist())])
    if not np.isnan(means[:, 3]).any():
        rows.append(["Energy", *map(spoken_energy, means[:, 3].tolist())])
    note = f"Means over {section.seeds} seeds, the same for all candidates." if section.seeds > 1 else "One seed."
    return Table("Decision", ["", "recommended", "runner-up"][: 1 + len(shown)], rows, note)


def _counted(section: DispatchSection) -> str:
    """Whose deadlines count, where not all do."""
    chosen = [] if section.target is None or not section.target.of else section.target.of
    return f" of {' and '.join(chosen)}" if chosen else ""


def _because(found: _Measured, best: int | None, rival: int | None) -> Iterator[str]:
    target = found.bench.section.target
    if best is not None:
        of = _counted(found.bench.section)
        kept = f" of those that miss at most {target.missed:g} % of the deadlines{of}" if target is not None else ""
        yield f"It has the least latency{kept}: {_said(found, best)}."
    if best is not None and rival is not None:
        yield f"The runner-up, {found.label(rival)}: {_said(found, rival)}. {_difference(found, best, rival)}"
    if best != 0:
        yield f"The fastest of all misses too many deadlines: {found.label(0)}: {_said(found, 0)}."
    seeds = found.bench.section.seeds
    if seeds > 1:
        yield f"Means over {seeds} seeds, the same for all candidates."
    slow = [found.label(k) for k in range(len(found.pairs)) if found.runs[k][0]["engine"] == "reference"]
    if slow:
        yield f"No kernel runs {', '.join(slow)}: the reference engine did."


def _said(found: _Measured, k: int) -> str:
    latency, missed, use, energy, _ = found.means[k].tolist()
    section = found.bench.section
    words = [f"{latency_name(section.latency)} {_time(latency)}{'' if section.of is None else f' of {section.of}'}"]
    words += [] if np.isnan(missed) else [f"{missed:.3g} % of deadlines missed"]
    words += [f"{100 * use:.3g} % busy"] + ([] if np.isnan(energy) else [spoken_energy(energy)])
    return ", ".join(words)


def _difference(found: _Measured, best: int, rival: int) -> str:
    """Whether the seeds tell the two apart, in pairs of runs of one seed."""
    more: Interval = mean_interval(found.values[rival, :, 0] - found.values[best, :, 0])
    if more.n < 2:
        return "One seed does not say how sure that is."
    words = f"Its latency is {_time(more.mean)} more [{_time(more.low)} to {_time(more.high)}]"
    return f"{words}." if more.low > 0 else f"{words}: these seeds do not tell the two apart."


def _streams(found: _Measured, best: int | None) -> Iterator[str]:
    """What the answer, or where there is none the fastest, means for each stream."""
    shown = 0 if best is None else best
    for stream in found.bench.section.stream:
        each = _stream(found, shown, stream.name)
        missed = "" if each["missed_pct"] is None else f", {each['missed_pct']:.3g} % of deadlines missed"
        yield f"{stream.name} under {found.label(shown)}: median {_time(each['p50_us'])}, p99 {_time(each['p99_us'])}{missed}."


def _time(us: float) -> str:
    return format_time(us / 1e6)


# Rows, plain data, figures


def _stream(found: _Measured, k: int, name: str) -> Json:
    """Means over the seeds of what was measured of a stream."""
    each = [run["streams"][name] for run in found.runs[k]]
    return {what: None if each[0][what] is None else float(np.mean([run[what] for run in each])) for what in each[0]}


def _candidate(found: _Measured, k: int) -> Json:
    section, types = found.bench.section, found.runs[k][0]["by_type"]
    values = {name: None if np.isnan(value) else value for name, value in zip(VALUES, found.means[k].tolist(), strict=True)}
    return {
        "order": found.order(k),
        "placement": found.placement(k),
        **values,
        "by_type": {name: float(np.mean([run["by_type"][name] for run in found.runs[k]])) for name in types},
        "streams": {stream.name: _stream(found, k, stream.name) for stream in section.stream},
        "verdict": "keeps" if found.keeps(k) else "breaks",
        "engine": found.runs[k][0]["engine"],
    }


def _frame(found: _Measured) -> pl.DataFrame:
    rows = [_candidate(found, k) for k in range(len(found.pairs))]
    columns: dict[str, list[object]] = {name: [row[name] for row in rows] for name in ("order", "placement")}
    columns |= {name: [row[name] for row in rows] for name in VALUES}
    columns |= {f"utilization_{name}": [row["by_type"][name] for row in rows] for name in rows[0]["by_type"]}
    for stream in found.bench.section.stream:
        for what in ("p50_us", "p99_us", "missed_pct"):
            columns[f"{stream.name}_{what}"] = [row["streams"][stream.name][what] for row in rows]
    columns["verdict"] = [row["verdict"] for row in rows]
    undefined = [name for name, values in columns.items() if all(value is None for value in values)]
    return pl.DataFrame({name: values for name, values in columns.items() if name not in undefined})


def _figures(found: _Measured, best: int | None) -> list[Figure]:
    section = found.bench.section
    of = "" if section.of is None else f" of {section.of}"
    caption = f"Means over {section.seeds} seed{'s' if section.seeds > 1 else ''}; lower is better."
    unit, size = latency_unit(float(found.means[:, 0].max()))
    latency = f"{latency_name(section.latency)}{of} ({unit})"
    shown: list[Figure] = [_bars(found, 0, "latency", "Latency by placement and order", caption, latency, size)]
    if not np.isnan(found.values[:, :, 1]).any():
        label = "deadlines missed (%)"
        shown.append(_bars(found, 1, "missed", "Deadlines missed by placement and order", caption, label))
    if not np.isnan(found.values[:, :, 3]).any():
        unit, size = energy_unit(float(np.nanmax(found.means[:, 3])))
        title, caption = "Energy by placement and order", f"{caption} Idle units count."
        shown.append(_bars(found, 3, "energy", title, caption, f"energy ({unit})", size))
    return [*shown, _utilization(found, best or 0)]


def _utilization(found: _Measured, best: int) -> Bars:
    """A group of bars for each placement under the order of the answer, a bar for each type of unit."""
    section, chosen = found.bench.section, found.pairs[best][0]
    rows = [_candidate(found, found.pairs.index((chosen, p))) for p in range(len(section.placement))]
    under = f" in the order {order_name(found.order(best))}" if len(section.order) > 1 else ""
    return Bars(
        "utilization",
        f"How busy each type of unit is{under}",
        "Share of the time from the first arrival to the last end.",
        groups=[in_words(row["placement"]) for row in rows],
        series={name: [100 * row["by_type"][name] for row in rows] for name in rows[0]["by_type"]},
        y_axis=Axis("utilisation (%)"),
    )


def _bars(found: _Measured, column: int, name: str, title: str, caption: str, label: str, size: float = 1.0) -> Bars:
    """A group of bars for each placement, a bar for each order; values over `size`."""
    section, at = found.bench.section, {pair: k for k, pair in enumerate(found.pairs)}
    series = {
        order_name(str(order)): [float(found.means[at[o, p], column]) / size for p in range(len(section.placement))]
        for o, order in enumerate(section.order)
    }
    groups = [in_words(str(choice)) for choice in section.placement]
    return Bars(name, title, caption, groups=groups, series=series, y_axis=Axis(label))
