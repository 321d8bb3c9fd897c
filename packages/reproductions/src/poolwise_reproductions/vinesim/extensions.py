"""Extensions of the VineSim report: our policies on its experiments, shared links, and energy per task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from poolwise.presentation.figure import Axis, Figure
from poolwise.presentation.table import Table
from poolwise_reproductions.vinesim.claims import NAMES
from poolwise_reproductions.vinesim.figures import FIVE_TASKS, over_gaps
from poolwise_reproductions.vinesim.results import VineSimResults
from poolwise_reproductions.vinesim.setups import PLACES, POLICIES, SIZES, Setup

OWN = ("earliest_finish", "delay")
LABELS = {**NAMES, **{policy: policy for policy in OWN}}
_PLACES = {PLACES[0]: "Figure 16", PLACES[1]: "Figure 18 a-c", PLACES[2]: "Figure 18 d-f"}


def draw(results: VineSimResults) -> Iterator[Figure]:
    """Draw our policies together with the report's, and the energy of each."""
    fine, title = results.plan.fine_gaps, "Our policies on the experiment of Figure 11"
    series = {LABELS[policy]: Setup(0, policy=policy) for policy in ("high", "flat", *OWN)}
    yield over_gaps(results, "ours-compute", title, FIVE_TASKS, fine, series)
    for ((layout, data), words), (name, size) in product(_PLACES.items(), SIZES.items()):
        base = Setup(0, layout=layout, data=data, data_size=size)
        label = f"ours-{words.replace(' ', '-').lower()}-{name.replace(' ', '').lower()}"
        lines = {LABELS[policy]: replace(base, policy=policy) for policy in POLICIES}
        title = f"Our policies on {words}, {name}"
        yield over_gaps(results, label, title, FIVE_TASKS, results.plan.data_gaps, lines)

    def joules(run: Mapping[str, Any]) -> float:
        return 1000 * float(run["energy_j"]) / float(run["measured_tasks"])

    caption = "Set-up of Figure 11; CPUs 60 W idle and 150 W busy, GPUs 40 W and 300 W (assumed). Idle units are included."
    title, axis = "Cost of operation: energy per task", Axis("energy per task (mJ)", log=True)
    yield over_gaps(results, "ours-energy", title, caption, fine, series, joules, axis)


def tables(results: VineSimResults) -> list[Table]:
    """Return the tables of gains and losses of our policies, without and with shared links."""
    return [_gains(results), *_contention(results)]


def explain(results: VineSimResults) -> list[str]:
    """Describe the gains of our policies over those of the report."""
    ratios = [ratio for *_, ratio in _all_gains(results)]
    wins, losses = sum(ratio > 1.01 for ratio in ratios), sum(ratio < 0.99 for ratio in ratios)
    return [
        f"Our policies against the best of HIGH, FLAT and CLOSER_TO_DATA on the report's experiments with data: of "
        f"{len(ratios)} pairs of set-up and policy {wins} are more than 1 % better and {losses} more than 1 % worse; the best "
        f"is {max(ratios):.2f} times as fast, the worst {min(ratios):.2f} times. Both policies weigh transfer against "
        "computation, which none of the report's policies does, and may wait for a better unit."
    ]


def _all_gains(results: VineSimResults) -> Iterator[tuple[str, str, float, str, float]]:
    """Yield (experiment, size, gap, policy, mean job latency of the report's best policy divided by that of ours)."""
    for ((layout, data), words), (name, size) in product(_PLACES.items(), SIZES.items()):
        for gap in results.plan.data_gaps:
            base = Setup(gap, layout=layout, data=data, data_size=size)
            latency = {policy: results.mean(replace(base, policy=policy)).value for policy in LABELS}
            for policy in OWN:
                yield words, name, gap, policy, min(latency[report] for report in NAMES) / latency[policy]


def _gains(results: VineSimResults) -> Table:
    shown = [gap for gap in (0, 50, 200, 1000) if gap in results.plan.data_gaps]
    gains: dict[tuple[str, str, str], dict[float, float]] = {}
    for words, name, gap, policy, ratio in _all_gains(results):
        gains.setdefault((words, name, policy), {})[gap] = ratio
    return Table(
        "Our policies against the best of HIGH, FLAT and CLOSER_TO_DATA",
        ["experiment", "data", "policy", *(f"{gap} us between arrivals" for gap in shown)],
        [[*key, *(f"{ratios[gap]:.2f}" for gap in shown)] for key, ratios in gains.items()],
        "Mean job latency of the best of the three at that load divided by that of our policy: above 1, our policy is faster.",
    )


def _contention(results: VineSimResults) -> list[Table]:
    rows, gaps = [], results.plan.contended_gaps
    for policy in POLICIES:
        base = Setup(0, layout="alternate", data_size=SIZES["64 KB"], policy=policy)
        both = [replace(base, gap=gap, contended=contended) for gap in gaps for contended in (False, True)]
        rows.append([LABELS[policy], *(f"{results.mean(setup).value:,.0f}" for setup in both)])
    table = Table(
        "Shared links (64 KB, deployment of Figure 16), mean job latency in us",
        ["policy", *(f"{gap} us, {words}" for gap in gaps for words in ("1 Gb/s, not shared", "10 Gb/s, shared"))],
        rows,
        "The report lowers the uplink to 1 Gb/s to model contention. With max-min fair sharing the uplink keeps its 10 Gb/s.",
    )
    return [table] if gaps else []
