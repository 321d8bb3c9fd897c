"""From the runs of deployments to the answer: the front, the best candidate, and what a few units of a kind gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from poolwise.arrays import BoolArray, FloatArray
from poolwise.exhibits.figure import Axis, Curves, Figure, Scatter
from poolwise.exhibits.table import Table
from poolwise.identity import Json
from poolwise.metrics import Interval, mean_interval
from poolwise.optimize.front import front
from poolwise.optimize.monotone import Element
from poolwise.plans.deployment_file import OBJECTIVES, counts_of
from poolwise.plans.deployment_trials import MEASURED, DeploymentBench
from poolwise.plans.plan import Answer, PlanStatus
from poolwise.units import format_time

EIGHTY, TWENTY = 0.8, 0.2
ASKED = "another number of units than asked for"
"""Why combinations are left out that nobody misses."""


@dataclass(frozen=True, eq=False)
class _Measured:
    """Candidates by cost, then latency, then energy.

    Attributes
    ----------
    elements : n candidates
    counts : (n, n_type) units
    values : (n, n_seed, 5) as `MEASURED`
    on_front : (n,)
    states : keeps, breaks or undecided, one a candidate
    margins : of the latency, one a candidate, us or multiples of the fastest; None without a target
    utility : (n,)
    """

    bench: DeploymentBench
    elements: tuple[Element, ...]
    counts: tuple[tuple[int, ...], ...]
    values: FloatArray
    on_front: BoolArray
    states: tuple[str, ...]
    margins: tuple[Interval, ...] | None
    utility: FloatArray

    @property
    def means(self) -> FloatArray:
        """(n, 5) means over the seeds."""
        means: FloatArray = self.values.mean(axis=1)
        return means

    def ranked(self, state: str) -> list[int]:
        """Candidates of a state, the best utility first."""
        means = self.means
        chosen = [k for k in range(len(self.elements)) if self.states[k] == state]
        return sorted(chosen, key=lambda k: (float(self.utility[k]), *means[k, :3].tolist(), self.elements[k]))

    def label(self, k: int) -> str:
        """A candidate in words."""
        section = self.bench.section
        units = ", ".join(f"{n} {unit.type}" for unit, n in zip(section.unit, self.counts[k], strict=True) if n)
        policy = f" under {section.placement[self.elements[k][-1]]}" if len(section.placement) > 1 else ""
        return f"{units}{policy}"


def deployment_answer(
    bench: DeploymentBench,
    elements: Sequence[Element],
    left_out: Mapping[str, int],
    measured: Sequence[Element],
    runs: Mapping[Element, Sequence[Json]],
    trials: int,
) -> Answer:
    """Put the answer together.

    Parameters
    ----------
    elements, left_out
        All candidates, and reason -> number of those that were not considered.
    measured, runs
        Candidates that were fully simulated, and their runs, one a seed.
    trials
        Runs in all, those of lower rungs included.
    """
    found = _measure(bench, measured, runs)
    keeping, open_ = found.ranked("keeps"), found.ranked("undecided")
    best = keeping[0] if keeping else None
    cheaper = [k for k in open_ if best is None or found.utility[k] < found.utility[best]]
    exhaustive = len(measured) == len(elements)
    status: PlanStatus = "undecided" if cheaper else "infeasible" if best is None else "decided"
    frame = _frame(found)
    content: Json = {
        "latency": f"{bench.section.latency} of the jobs' latency, us",
        "utility": dict(bench.section.utility),
        "chosen": None if best is None else _candidate(found, best),
        "runner_up": _candidate(found, keeping[1]) if len(keeping) > 1 else None,
        "cheaper_but_undecided": _candidate(found, cheaper[0]) if cheaper else None,
        "front": [_candidate(found, k) for k in np.flatnonzero(found.on_front).tolist()],
        "search": {"exhaustive": exhaustive, "candidates": len(elements), "measured": len(measured), "runs": trials},
        "left_out": dict(left_out),
        "eighty_twenty": _eighty_twenty(found),
    }
    return Answer(
        status=status,
        headline=_headline(found, best, bool(cheaper)),
        because=list(_because(found, keeping, cheaper)),
        sections={"What few units bring": list(_few(found)), "How it was found": list(_how(content, bench, exhaustive))},
        notes=[f"{count:,} combinations were left out: {reason}." for reason, count in left_out.items() if reason != ASKED],
        figures=_figures(found, best),
        candidates=frame,
        chosen=best,
        content=content,
        inputs=bench.tables.sha256,
        seeds=list(range(bench.section.seeds)),
        card=None if best is None else _card(found, best, keeping[1] if len(keeping) > 1 else None),
    )


def _measure(bench: DeploymentBench, measured: Sequence[Element], runs: Mapping[Element, Sequence[Json]]) -> _Measured:
    values = np.array([[[run[name] for name in MEASURED] for run in runs[e]] for e in measured], dtype=np.float64)
    means = values.mean(axis=1)
    order = sorted(range(len(measured)), key=lambda k: (means[k, 1], means[k, 0], means[k, 2], measured[k]))
    elements, values, means = tuple(measured[k] for k in order), values[order], means[order]
    utility = {str(name): weight for name, weight in bench.section.utility.items()}
    weights = np.array([utility.get(name, 0.0) for name in OBJECTIVES])
    states, margins = _judge(bench, values)
    return _Measured(
        bench,
        elements,
        tuple(counts_of(bench.section, element) for element in elements),
        values,
        front(means[:, :3]),
        states,
        margins,
        means[:, :3] @ weights,
    )


def _judge(bench: DeploymentBench, values: FloatArray) -> tuple[tuple[str, ...], tuple[Interval, ...] | None]:
    """Whether the latency of each candidate is good enough, in the mean over the seeds.

    Margins are us below the bound; or, against the fastest, its multiples, seed by seed: seeds differ far more in how long
    the jobs take at best than in how candidates compare.
    """
    target = bench.section.target
    if target is None:
        return ("keeps",) * len(values), None
    latency = values[:, :, 0]
    if target.within is not None:
        missing = target.within - latency / latency[np.argmin(latency.mean(axis=1))]
    else:
        assert target.at_most is not None  # the section takes one of both
        missing = target.at_most - latency
    margins = []
    for row in missing:
        found = mean_interval(row)
        margins.append(found if found.n > 1 else Interval(found.mean, found.mean, found.mean, found.level, found.n))
    states = tuple("keeps" if m.low >= 0 else "breaks" if m.high < 0 else "undecided" for m in margins)
    return states, tuple(margins)


# Sentences


def _headline(found: _Measured, best: int | None, undecided: bool) -> str:
    if best is None:
        return "Undecided: no deployment is shown to be fast enough." if undecided else "No deployment is fast enough."
    words = f"{found.label(best)} for {found.means[best, 1]:,.6g}"
    return f"{words} is enough; whether less is, these seeds do not tell." if undecided else f"Buy {words}."


def _card(found: _Measured, best: int, rival: int | None) -> Table:
    """The answer at a glance, the runner-up beside it."""
    section = found.bench.section
    shown = [best, *([] if rival is None else [rival])]
    rows = [[f"Units: {unit.type}", *(f"{found.counts[k][u]:,}" for k in shown)] for u, unit in enumerate(section.unit)]
    if len(section.placement) > 1:
        rows.append(["Placement", *(str(section.placement[found.elements[k][-1]]) for k in shown)])
    rows.append(["How sure that is", _certainty(found), ""][: 1 + len(shown)])
    rows.append([f"{section.latency} latency", *(format_time(found.means[k, 0] / 1e6) for k in shown)])
    rows.append(["Purchase cost", *(_plain(found.means[k, 1]) for k in shown)])
    rows.append(["Energy", *(f"{_plain(found.means[k, 2])} J" for k in shown)])
    rows.append(["Units busy", *(f"{100 * found.means[k, 3]:.3g} %" for k in shown)])
    note = f"Means over {section.seeds} seeds, the same for all candidates." if section.seeds > 1 else "One seed."
    return Table("Decision", ["", "recommended", "runner-up"][: 1 + len(shown)], rows, note)


def _certainty(found: _Measured) -> str:
    if found.margins is None:
        return "no target was set: the means decide"
    if found.bench.section.seeds == 1:
        return "not known: one seed"
    return f"the 95 % interval of the margin over {found.bench.section.seeds} seeds clears the target"


def _because(found: _Measured, keeping: Sequence[int], cheaper: Sequence[int]) -> Iterator[str]:
    if keeping:
        yield f"Of those that are fast enough it has the least {_utility(found)}: {_said(found, keeping[0])}."
    if len(keeping) > 1:
        yield f"The runner-up, {found.label(keeping[1])}: {_said(found, keeping[1])}."
    if cheaper:
        yield f"Better, but not told from the target with these seeds: {found.label(cheaper[0])}: {_said(found, cheaper[0])}."
    fastest = int(np.argmin(found.means[:, 0]))
    yield f"The fastest of all, {found.label(fastest)}: {_said(found, fastest)}."
    yield f"{int(found.on_front.sum()):,} candidates are on the front of latency, purchase cost and energy."


def _utility(found: _Measured) -> str:
    words = [f"{weight:g} x {name}" if weight != 1 else name for name, weight in found.bench.section.utility.items()]
    return " + ".join(words)


def _said(found: _Measured, k: int) -> str:
    latency, cost, energy, utilization, _ = found.means[k].tolist()
    words = f"{found.bench.section.latency} latency {format_time(latency / 1e6)}"
    if found.margins is not None:
        margin = found.margins[k]
        words += f" (margin {margin.mean:,.3g} [{margin.low:,.3g}, {margin.high:,.3g}])"
    return f"{words}, cost {_plain(cost)}, {_plain(energy)} J, {100 * utilization:.3g} % busy"


def _plain(value: float) -> str:
    """A number without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _how(content: Json, bench: DeploymentBench, exhaustive: bool) -> Iterator[str]:
    search, seeds = content["search"], bench.section.seeds
    runs = f"{search['runs']:,} runs"
    if exhaustive:
        yield f"All {search['candidates']:,} candidates were simulated, {runs}: the front is exact for these runs."
    else:
        yield (
            f"{search['measured']:,} of {search['candidates']:,} candidates were fully simulated, {runs} in all: a random "
            "sample halved twice on parts of the jobs, then local moves from the front. It may miss candidates."
        )
    if seeds > 1:
        yield f"Means over {seeds} seeds, the same for all candidates; intervals (95 %) are of the margin over the seeds."


# What few units of the last type bring


def _gains(found: _Measured) -> dict[str, list[tuple[float, float, int]]]:
    """Policy -> (share of the last type among all units, share of the gain in latency, row), ascending.

    Of plans with a fixed number of units of two types; 0 is the latency with the fewest of the last type, 1 the least one.
    """
    section = found.bench.section
    if section.units is None or len(section.unit) != 2:
        return {}
    gains: dict[str, list[tuple[float, float, int]]] = {}
    for p, choice in enumerate(section.placement):
        rows = sorted((k for k in range(len(found.elements)) if found.elements[k][-1] == p), key=lambda k: found.counts[k][1])
        latency = found.means[rows, 0]
        possible = float(latency[0] - latency.min()) if len(rows) else 0.0
        if possible > 0:
            shares = [found.counts[k][1] / section.units for k in rows]
            gains[str(choice)] = [
                (s, float((latency[0] - y) / possible), k) for s, y, k in zip(shares, latency, rows, strict=True)
            ]
    return gains


def _eighty_twenty(found: _Measured) -> Json | None:
    """For each policy, the least share of the last type that brings 80 % of the gain, and what the first 20 % bring."""
    answers: Json = {}
    for policy, rows in _gains(found).items():
        enough = next((share, k) for share, gain, k in rows if gain >= EIGHTY)
        few = [gain for share, gain, _ in rows if share <= TWENTY + 1e-9]
        cost = found.means[:, 1]
        answers[policy] = {
            "share_for_80_percent": enough[0],
            "cost_for_80_percent": float(cost[enough[1]]),
            "gain_of_20_percent": few[-1] if few else None,
            "cost_of_all": float(cost[rows[-1][2]]),
        }
    return answers or None


def _few(found: _Measured) -> Iterator[str]:
    kind = found.bench.section.unit[-1].type
    for policy, said in (_eighty_twenty(found) or {}).items():
        few, share, cost = (said[name] for name in ("gain_of_20_percent", "share_for_80_percent", "cost_for_80_percent"))
        first = "" if few is None else f" The first 20 % of the units as {kind} bring {100 * few:.3g} % of it."
        yield (
            f"{policy}: 80 % of the gain in latency that {kind} can bring takes {100 * share:.3g} % of the units as {kind}, "
            f"for {cost:,.6g}; {kind} only would cost {said['cost_of_all']:,.6g}.{first}"
        )


# Rows, plain data, figures


def _frame(found: _Measured) -> pl.DataFrame:
    section, means = found.bench.section, found.means
    columns: dict[str, object] = {unit.type: [counts[k] for counts in found.counts] for k, unit in enumerate(section.unit)}
    columns["placement"] = [str(section.placement[element[-1]]) for element in found.elements]
    columns |= {name: means[:, k] for k, name in enumerate(MEASURED)}
    columns["utility"] = found.utility
    columns["front"] = found.on_front
    columns["verdict"] = list(found.states)
    return pl.DataFrame(columns)


def _candidate(found: _Measured, k: int) -> Json:
    section = found.bench.section
    content: Json = {
        "units": {unit.type: n for unit, n in zip(section.unit, found.counts[k], strict=True)},
        "placement": str(section.placement[found.elements[k][-1]]),
        **dict(zip(MEASURED, found.means[k].tolist(), strict=True)),
        "utility": float(found.utility[k]),
        "verdict": found.states[k],
    }
    if found.margins is not None:
        margin = found.margins[k]
        content |= {"margin": margin.mean, "margin_low": margin.low, "margin_high": margin.high}
    return content


def _figures(found: _Measured, best: int | None) -> list[Figure]:
    shown: list[Figure] = []
    gains = _gains(found)
    if gains:
        kind = found.bench.section.unit[-1].type
        x = sorted({share for rows in gains.values() for share, _, _ in rows})
        series = {}
        for policy, rows in gains.items():
            known = {share: 100 * gain for share, gain, _ in rows}
            series[policy] = [known.get(share, float("nan")) for share in x]
        shown.append(
            Curves(
                "few_units",
                f"How many {kind} to deploy",
                f"Share of the gain in latency between the fewest {kind} and the best number of them. The 80-20 rule would put "
                "20 % of the units at 80 % of the gain.",
                x=[100 * share for share in x],
                series={**series, "80 % of the gain": [80.0] * len(x)},
                x_axis=Axis(f"{kind} among the units (%)"),
                y_axis=Axis("gain in latency (%)"),
                highlight=100 * TWENTY,
            )
        )
    for name, label, k in (("cost", "purchase cost", 1), ("energy", "energy (J)", 2)):
        groups = {"on the front": found.on_front, "others": ~found.on_front}
        series_of = {
            group: (found.means[rows, k].tolist(), found.means[rows, 0].tolist())
            for group, rows in groups.items()
            if rows.any()
        }
        if best is not None:
            series_of["the answer"] = ([float(found.means[best, k])], [float(found.means[best, 0])])
        title = f"Latency against {label.partition(' (')[0]}"
        caption = "Each candidate once; the front is that of latency, purchase cost and energy together."
        y_axis = Axis(f"{found.bench.section.latency} latency of a job (us)", log=True)
        shown.append(Scatter(f"front_{name}", title, caption, series=series_of, x_axis=Axis(label), y_axis=y_axis))
    return shown
