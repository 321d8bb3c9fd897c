"""Extensions of the VineSim report: our policies on its experiments, shared links, and energy per task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from poolwise.presentation.figure import Axis, Curves, Figure
from poolwise.presentation.table import Table
from poolwise.reproductions.vinesim.claims import NAMES, SIZES
from poolwise.reproductions.vinesim.figures import over_gaps
from poolwise.reproductions.vinesim.results import VineSimResults
from poolwise.reproductions.vinesim.setups import KB64, PLACES, POLICIES, Setup

LABELS = {**NAMES, "earliest_finish": "earliest_finish", "delay": "delay"}
OWN = ("earliest_finish", "delay")
_PLACES = {PLACES[0]: "Figure 16", PLACES[1]: "Figure 18 a-c", PLACES[2]: "Figure 18 d-f"}


def draw(results: VineSimResults) -> list[Figure]:
    """Draw our policies together with the report's, and the energy of each."""
    return [*_latency(results), *_energy(results)]


def tables(results: VineSimResults) -> list[Table]:
    """Return the tables of gains and losses of our policies, without and with shared links."""
    return [_gains(results), *_contention(results)]


def explain(results: VineSimResults) -> list[str]:
    """Describe what our policies gain over the report's."""
    ratios = [ratio for *_, ratio in _all_gains(results)]
    wins = sum(ratio > 1.01 for ratio in ratios)
    losses = sum(ratio < 0.99 for ratio in ratios)
    return [
        f"Our policies against the best of HIGH, FLAT and CLOSER_TO_DATA on the report's experiments with data: of "
        f"{len(ratios)} pairs of set-up and policy {wins} are more than 1 % better and {losses} more than 1 % worse; the best "
        f"is {max(ratios):.2f} times as fast, the worst {min(ratios):.2f} times. Both policies weigh transfer against "
        "computation, which none of the report's policies does, and may wait for a better unit."
    ]


def _latency(results: VineSimResults) -> Iterator[Figure]:
    def at(base: Setup, policy: str) -> Callable[[float], Setup]:
        return lambda gap: replace(base, gap=gap, policy=policy)

    caption = "20 CPUs and 20 GPUs, 500 jobs of 5 tasks of 30M operations."
    figure = Curves("ours-compute", "Our policies on the experiment of Figure 11", caption)
    base = Setup(0)
    series = {LABELS[policy]: at(base, policy) for policy in ("high", "flat", *OWN)}
    yield over_gaps(results, figure, results.plan.fine_gaps, series)
    for (layout, data), words in _PLACES.items():
        for name, size in SIZES.items():
            base = Setup(0, layout=layout, data=data, data_size=size)
            label = words.replace(" ", "-").lower()
            figure = Curves(f"ours-{label}-{name.replace(' ', '').lower()}", f"Our policies on {words}, {name}", caption)
            yield over_gaps(results, figure, results.plan.data_gaps, {LABELS[p]: at(base, p) for p in POLICIES})


def _energy(results: VineSimResults) -> Iterator[Figure]:
    def at(policy: str) -> Callable[[float], Setup]:
        return lambda gap: Setup(gap, policy=policy)

    def joules(content: Mapping[str, Any]) -> float:
        return 1000 * float(content["energy_j"]) / float(content["measured_tasks"])

    caption = "Set-up of Figure 11; CPUs 60 W idle and 150 W busy, GPUs 40 W and 300 W (assumed). Idle units are included."
    figure = Curves("ours-energy", "Cost of operation: energy per task", caption)
    series = {LABELS[policy]: at(policy) for policy in ("high", "flat", *OWN)}
    yield over_gaps(results, figure, results.plan.fine_gaps, series, joules, Axis("energy per task (mJ)", log=True))


def _all_gains(results: VineSimResults) -> Iterator[tuple[str, str, float, str, float]]:
    """Yield (experiment, size, gap, policy, mean job latency of the report's best policy over ours)."""
    for (layout, data), words in _PLACES.items():
        for name, size in SIZES.items():
            for gap in results.plan.data_gaps:
                base = Setup(gap, layout=layout, data=data, data_size=size)
                best = min(float(results.values(replace(base, policy=policy)).mean()) for policy in NAMES)
                for policy in OWN:
                    own = float(results.values(replace(base, policy=policy)).mean())
                    yield words, name, gap, policy, best / own


def _gains(results: VineSimResults) -> Table:
    shown = [gap for gap in (0, 50, 200, 1000) if gap in results.plan.data_gaps]
    found: dict[tuple[str, str, str], dict[float, float]] = {}
    for words, name, gap, policy, ratio in _all_gains(results):
        found.setdefault((words, name, policy), {})[gap] = ratio
    rows = [[*key, *[f"{ratios[gap]:.2f}" for gap in shown]] for key, ratios in found.items()]
    return Table(
        "Our policies against the best of HIGH, FLAT and CLOSER_TO_DATA",
        ["experiment", "data", "policy", *[f"{gap} us between arrivals" for gap in shown]],
        rows,
        "Mean job latency of the best of the three at that load over that of our policy: above 1 our policy is faster.",
    )


def _contention(results: VineSimResults) -> list[Table]:
    rows, gaps = [], results.plan.contended_gaps
    for policy in POLICIES:
        base = Setup(0, layout="alternate", data_size=KB64, policy=policy)
        both = [replace(base, gap=gap, contended=contended) for gap in gaps for contended in (False, True)]
        rows.append([LABELS[policy], *[f"{results.values(setup).mean():,.0f}" for setup in both]])
    header = [f"{gap} us, {words}" for gap in gaps for words in ("1 Gb/s, not shared", "10 Gb/s, shared")]
    table = Table(
        "Shared links (64 KB, deployment of Figure 16), mean job latency in us",
        ["policy", *header],
        rows,
        "The report lowers the uplink to 1 Gb/s to model contention. With max-min fair sharing the uplink keeps its 10 Gb/s.",
    )
    return [table] if gaps else []
