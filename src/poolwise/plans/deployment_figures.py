"""Figures of deployments: what a few units of the last type bring, and latency against cost and energy."""

from __future__ import annotations

from poolwise.hashing import Json
from poolwise.plans.deployment_measured import MeasuredDeployments
from poolwise.presentation.figure import Axis, Curves, Figure, Scatter
from poolwise.presentation.format import energy_unit, in_words, latency_name, latency_unit

EIGHTY, TWENTY = 0.8, 0.2


def deployment_figures(found: MeasuredDeployments, best: int | None) -> list[Figure]:
    """Draw what few units bring, and each candidate by its latency and what it costs."""
    shown: list[Figure] = []
    gains = gains_of(found)
    if gains:
        kind = found.bench.section.unit[-1].type
        x = sorted({share for rows in gains.values() for share, _, _ in rows})
        series = {}
        for policy, rows in gains.items():
            known = {share: 100 * gain for share, gain, _ in rows}
            series[in_words(policy)] = [known.get(share, float("nan")) for share in x]
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
    unit, size = latency_unit(float(found.means[:, 0].max()))
    energy, joules = energy_unit(float(found.means[:, 2].max()))
    y_axis = Axis(f"{latency_name(found.bench.section.latency)} of a job ({unit})", log=True)
    caption = "Each candidate once; the front is that of latency, purchase cost and energy together."
    for name, label, k, scale in (("cost", "purchase cost", 1, 1.0), ("energy", f"energy ({energy})", 2, joules)):
        costs, latencies = found.means[:, k] / scale, found.means[:, 0] / size
        groups = {"on the front": found.on_front, "others": ~found.on_front}
        series_of = {group: (costs[rows].tolist(), latencies[rows].tolist()) for group, rows in groups.items() if rows.any()}
        if best is not None:
            series_of["the answer"] = ([float(costs[best])], [float(latencies[best])])
        title = f"Latency against {label.partition(' (')[0]}"
        shown.append(Scatter(f"front_{name}", title, caption, series=series_of, x_axis=Axis(label), y_axis=y_axis))
    return shown


def gains_of(found: MeasuredDeployments) -> dict[str, list[tuple[float, float, int]]]:
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


def eighty_twenty(found: MeasuredDeployments) -> Json | None:
    """For each policy, the least share of the last type that brings 80 % of the gain, and what the first 20 % bring."""
    answers: Json = {}
    for policy, rows in gains_of(found).items():
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
