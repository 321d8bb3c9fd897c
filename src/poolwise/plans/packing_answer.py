"""Answer of a packing plan: jobs that fit under each combination, stranded devices by type, and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from poolwise.comparison.ranking import CandidateRanking
from poolwise.hashing import Json
from poolwise.presentation.answer import Answer, DecisionCard
from poolwise.presentation.figure import Axis, Bars, Curves, Figure
from poolwise.presentation.format import rows_note
from poolwise.presentation.table import Table, frame_table
from poolwise.quantities import format_count
from poolwise.studies.cells import Cell


def packing_answer(cells: Sequence[Cell], results: Sequence[Json], device: str) -> Answer:
    """Compare the first combination with all others, by means over their seeds."""
    runs: dict[str, list[Json]] = {}
    parameters: dict[str, Mapping[str, Any]] = {}
    for cell, result in zip(cells, results, strict=True):
        name = combination_label(cell.parameters)
        runs.setdefault(name, []).append(result)
        parameters[name] = cell.parameters
    rows = [_row(parameters[name], counts, runs[next(iter(runs))], device) for name, counts in runs.items()]
    order = sorted(range(len(rows)), key=lambda k: -rows[k]["fit"])
    for row in rows:
        row["verdict"] = "fits most" if row["fit"] == rows[order[0]]["fit"] else ""
    names, first_result = list(runs), results[0]
    first, chosen = names[0], names[order[0]]
    frame, described = pl.DataFrame([rows[k] for k in order]), [{"case": name, **_content(runs[name])} for name in names]
    ranking = CandidateRanking.of(order, lambda k: "keeps", lambda k: -float(rows[k]["fit"]))  # no target excludes any
    return ranking.answer(
        order,
        frame,
        lambda k: described[k],
        {"candidates": described},
        _figures(runs, device),
        headline=_headline(rows[order[0]], rows[0], chosen, first, device),
        because=_because(runs, chosen, first, device),
        notes=[
            "Jobs are drawn from the trace with replacement and submitted at once. No job ends, and each is tried once.",
            f"A {device} is stranded if it is idle while a waiting job accepts its type.",
            f"Numbers are means over {format_count(len(runs[first]), 'seed')}. "
            f"The plan ignores the speed of {device}s over the network.",
            *(rows_note(count, "excluded from the trace", reason) for reason, count in first_result["excluded"].items()),
        ],
        inputs={Path(cell.workload.path).name: cell.workload.sha256 for cell in cells},
        seeds=sorted({cell.seed for cell in cells}),
        decision=_decision(rows[order[0]], rows[0], chosen, first, device, len(runs[first])),
        tables=[_by_type(runs, device), frame_table(frame, 0)],
    )


def _decision(
    row: Mapping[str, Any], base: Mapping[str, Any], chosen: str, first: str, device: str, seeds: int
) -> DecisionCard:
    """Summarize the combination with the most jobs, compared with the first combination of the plan."""
    name = device.lower()
    counts = {
        "Jobs that fit": "fit",
        f"{device}s granted": f"{name}s_granted",
        f"{device}s stranded": f"{name}s_stranded",
        f"Whole {device}s idle": f"{name}s_idle_whole",
        f"Jobs with {device}s of other nodes": f"jobs_with_{name}s_of_other_nodes",
    }
    effects = [[text, f"{row[key]:,.0f}", f"{base[key]:,.0f}"] for text, key in counts.items()]
    if chosen != first:
        effects.insert(
            1, ["More jobs than with the first combination, per seed", f"{row['more_least']:,.0f} to {row['more_most']:,.0f}"]
        )
    means = f"Means over {format_count(seeds, 'seed')} of {row['jobs']:,.0f} jobs each"
    note = f"{means}, on {row[f'{name}s_installed']:,.0f} {device}s."
    return DecisionCard([], effects, reference="" if chosen == first else first, note=note, recommended=chosen)


def combination_label(parameters: Mapping[str, Any]) -> str:
    """Name a combination by the last parts of the varied paths and their values: "shared, not pooled"."""
    return ", ".join(_parameter_text(path.rpartition(".")[2], value) for path, value in parameters.items()) or "as written"


def _parameter_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} = {value}"


def _total(run: Json, name: str) -> float:
    return float(sum(kind[name] for kind in run["types"].values()))


def _row(parameters: Mapping[str, Any], runs: list[Json], first: list[Json], device: str) -> dict[str, Any]:
    name = device.lower()
    installed = _total(runs[0], "installed")
    stranded = fmean(_total(run, "stranded") for run in runs)
    more = [run["fit"] - other["fit"] for run, other in zip(runs, first, strict=True)]
    return {
        **{path: str(value).lower() if isinstance(value, bool) else str(value) for path, value in parameters.items()},
        "jobs": fmean(run["jobs"] for run in runs),
        "fit": fmean(run["fit"] for run in runs),
        "more_than_first": fmean(more),
        "more_least": float(min(more)),
        "more_most": float(max(more)),
        f"{name}_jobs_fit": fmean(run["device_fit"] for run in runs),
        f"{name}s_installed": installed,
        f"{name}s_granted": fmean(run["granted"] for run in runs),
        f"{name}s_stranded": stranded,
        "stranded_pct": 100 * stranded / installed,
        f"{name}s_idle_whole": fmean(_total(run, "whole") for run in runs),
        f"jobs_with_{name}s_of_other_nodes": fmean(run["away"] for run in runs),
    }


def _content(runs: list[Json]) -> Json:
    """Return means over seeds as plain data."""
    types = {
        name: {key: fmean(run["types"][name][key] for run in runs) for key in kind} for name, kind in runs[0]["types"].items()
    }
    nodes = {name: fmean(run["nodes"][name] for run in runs) for name in runs[0]["nodes"]}
    counts = ("jobs", "fit", "device_jobs", "device_fit", "away", "asked", "granted")
    return {**{name: fmean(run[name] for run in runs) for name in counts}, "nodes_in_use": nodes, "types": types}


def _headline(row: Mapping[str, Any], base: Mapping[str, Any], chosen: str, first: str, device: str) -> str:
    name = f"{device.lower()}s_stranded"
    text = f'{row["fit"]:,.0f} of {row["jobs"]:,.0f} jobs fit with "{chosen}"'
    if chosen == first:
        return f"{text}; {row[name]:,.0f} {device}s are stranded. No other combination fits more jobs."
    return (
        f"{text}: {row['more_than_first']:,.0f} more ({100 * row['more_than_first'] / base['fit']:.1f} %) than with "
        f'"{first}"; '
        f"{row[name]:,.0f} instead of {base[name]:,.0f} {device}s are stranded."
    )


def _because(runs: Mapping[str, list[Json]], chosen: str, first: str, device: str) -> list[str]:
    sentences = []
    for name in dict.fromkeys((first, chosen)):
        whole, idle = (fmean(_total(run, key) for run in runs[name]) for key in ("whole", "idle"))
        nodes = {key: fmean(run["nodes"][key] for run in runs[name]) for key in runs[name][0]["nodes"]}
        use = ", ".join(f"{100 * share:.0f} % of {key}" for key, share in nodes.items())
        sentences.append(
            f'With "{name}", {idle:,.0f} {device}s are idle: {whole:,.0f} whole devices; the rest are parts of shared devices. '
            f"Nodes use {use}."
        )
    away = fmean(run["away"] for run in runs[chosen])
    if away:
        sentences.append(f'With "{chosen}", {away:,.0f} jobs use {device}s of another node.')
    return sentences


def _by_type(runs: Mapping[str, list[Json]], device: str) -> Table:
    """Return a table of stranded devices of each type under each combination."""
    rows = []
    for kind, counts in next(iter(runs.values()))[0]["types"].items():
        stranded = (fmean(run["types"][kind]["stranded"] for run in each) for each in runs.values())
        rows.append([kind, f"{counts['installed']:,.0f}", *(f"{value:,.1f}" for value in stranded)])
    note = f"{device}s that are idle while a waiting job accepts their type; means over the seeds."
    return Table(f"Stranded {device}s by type", ["type", "installed", *runs], rows, note)


def _figures(runs: Mapping[str, list[Json]], device: str) -> list[Figure]:
    first = next(iter(runs.values()))
    kinds = list(first[0]["types"])
    installed = {kind: first[0]["types"][kind]["installed"] for kind in kinds}
    bars = {
        name: [100 * fmean(run["types"][kind]["stranded"] for run in each) / installed[kind] for kind in kinds]
        for name, each in runs.items()
    }
    requested = [100 * fmean(run["curve"][k][0] for run in first) for k in range(len(first[0]["curve"]))]
    granted = {
        name: [100 * fmean(run["curve"][k][1] for run in each) for k in range(len(requested))] for name, each in runs.items()
    }
    return [
        Curves(
            "granted",
            f"{device}s granted versus {device}s requested",
            f"Jobs in the order in which they are tried; both axes in percent of the installed {device}s.",
            x=requested,
            series=granted,
            x_axis=Axis(f"requested (% of installed {device}s)"),
            y_axis=Axis(f"granted (% of installed {device}s)"),
        ),
        Bars(
            "stranded",
            f"Stranded {device}s by type",
            f"{device}s that are idle while a waiting job accepts their type, in percent of the type's installed {device}s.",
            groups=[f"{kind} ({installed[kind]:,.0f})" for kind in kinds],
            series=bars,
            y_axis=Axis(f"stranded (% of the type's {device}s)"),
        ),
    ]
