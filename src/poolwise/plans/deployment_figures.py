"""Figures of deployments: latency gain by the share of the last unit type, and latency by cost and energy."""

from __future__ import annotations

from poolwise.hashing import Json
from poolwise.plans.deployment_measured import MeasuredDeployments
from poolwise.presentation.figure import Axis, Curves, Figure, Scatter
from poolwise.presentation.format import energy_unit, humanize_name, latency_name, latency_unit

EIGHTY, TWENTY = 0.8, 0.2


def deployment_figures(found: MeasuredDeployments, best: int | None) -> list[Figure]:
    """Draw the gain from a few units, and each candidate's latency by its cost and its energy."""
    figures: list[Figure] = []
    gains = gains_of(found)
    if gains:
        kind = found.task_type.section.unit[-1].type
        x = sorted({share for rows in gains.values() for share, _, _ in rows})
        series = {}
        for policy, rows in gains.items():
            known = {share: 100 * gain for share, gain, _ in rows}
            series[humanize_name(policy)] = [known.get(share, float("nan")) for share in x]
        figures.append(
            Curves(
                "few_units",
                f"Latency gain by share of {kind}",
                f"Share of the possible latency gain between the fewest {kind} and the best number of them. The 80-20 rule "
                "would place 80 % of the gain at 20 % of the units.",
                x=[100 * share for share in x],
                series={**series, "80 % of the gain": [80.0] * len(x)},
                x_axis=Axis(f"{kind} among the units (%)"),
                y_axis=Axis("share of the latency gain (%)"),
                highlight=100 * TWENTY,
            )
        )
    unit, size = latency_unit(float(found.means[:, 0].max()))
    energy, joules = energy_unit(float(found.means[:, 2].max()))
    y_axis = Axis(f"{latency_name(found.task_type.section.latency)} of jobs ({unit})", log=True)
    caption = "One point per candidate; the front is the Pareto front of latency, purchase cost and energy together."
    for name, label, k, scale in (("cost", "purchase cost", 1, 1.0), ("energy", f"energy ({energy})", 2, joules)):
        costs, latencies = found.means[:, k] / scale, found.means[:, 0] / size
        groups = {"on the front": found.on_front, "not on the front": ~found.on_front}
        series_of = {group: (costs[rows].tolist(), latencies[rows].tolist()) for group, rows in groups.items() if rows.any()}
        if best is not None:
            series_of["the answer"] = ([float(costs[best])], [float(latencies[best])])
        title = f"Latency by {label.partition(' (')[0]}"
        figures.append(Scatter(f"front_{name}", title, caption, series=series_of, x_axis=Axis(label), y_axis=y_axis))
    return figures


def gains_of(found: MeasuredDeployments) -> dict[str, list[tuple[float, float, int]]]:
    """Return policy -> (share of the last type among all units, share of the possible latency gain, row), ascending.

    The gain is defined for a fixed number of units of two types: 0 at the fewest units of the last type, 1 at the lowest
    latency. Other plans return {}.
    """
    section = found.task_type.section
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
    """Return, per policy, the least share of the last type with 80 % of the gain, and the gain with 20 % of the units."""
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
