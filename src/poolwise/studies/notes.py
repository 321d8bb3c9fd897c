"""Notes on a study's results, and a summary of its setup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from poolwise.api import SPARSE_SHARE
from poolwise.files.factory import warms_up_under_fcfs
from poolwise.metrics import Outcomes
from poolwise.studies.measured import CellResult, MeasuredStudy
from poolwise.studies.study import Study
from poolwise.units import format_memory


def notes(result: MeasuredStudy) -> list[str]:
    """Return notes on waiting and excluded jobs, rejected decisions, low use of pools, and warnings.

    `studies.diagnostics` reports jobs that can never run.
    """
    found: list[str] = []
    for machine, cells in cells_by_machine(result):
        first = cells[0]
        outcomes = result.outcomes(first)
        suffix = f" ({machine})" if machine else ""
        share = float(outcomes.needs_remote_memory.mean())
        if outcomes.pool_memory and outcomes.whole_nodes and share < SPARSE_SHARE:
            found.append(f"Only {100 * share:.2g} % of the jobs need remote memory{suffix}, so pools have little effect.")
        waiting = max(cell.waiting for cell in cells)
        if waiting:
            found.append(f"{waiting:,} jobs never started{suffix}.")
    if result.study.measure.population == "common":
        found += _left_out(result)
    for what, verb in (("excluded", "excluded from the trace"), ("repaired", "changed while reading")):
        counts: dict[str, int] = {}
        for cell in result.cells:
            counts |= getattr(cell, what)
        found += [f"{count:,} rows were {verb}: {reason}." for reason, count in sorted(counts.items())]
    refused = {reason: count for facts in result.facts.values() for reason, count in facts.get("refused", {}).items()}
    found += [f"The machine rejected scheduling decisions ({count:,}): {why}." for why, count in sorted(refused.items())]
    return found + sorted({warning for facts in result.facts.values() for warning in facts.get("warnings", ())})


def _node_memory(outcomes: Outcomes) -> str:
    most = outcomes.most_local_memory
    return format_memory(outcomes.local_memory) + ("" if most is None else f" to {format_memory(most)}")


def description(result: MeasuredStudy) -> list[tuple[str, str]]:
    """Return a summary of workload, machine, schedulers and measurement as (name, value) pairs."""
    study, first = result.study, result.study.cells[0]
    outcomes = result.outcomes(result.cells[0])
    measured = sorted({int(result.population(cell).sum()) for cell in result.cells})
    pairs = [
        ("workload", f"{Path(first.trace.path).name}, {_jobs(len(outcomes))} starting at row {first.trace.first:,}"),
        ("machine", f"{first.machine.name}: {outcomes.n_nodes:,} nodes with {_node_memory(outcomes)} each"),
        *((f"varied: {path}", ", ".join(str(value) for value in values)) for path, values in study.vary.items()),
        ("runs", f"{len(study.cells)}, and {len(study.runs) - len(study.cells)} under FCFS without backfilling for fairness"),
        ("warm-up", f"{_jobs(first.warm_up)} under FCFS without backfilling{_warm_up_exceptions(study)}"),
        ("measured", " or ".join(_jobs(count) for count in measured) + f" ({study.measure.population} population)"),
        ("seeds", seed_text(cell.seed for cell in study.cells)),
        ("engine", ", ".join(sorted({cell.engine for cell in result.cells}))),
    ]
    return pairs


def seed_text(seeds: Iterable[int]) -> str:
    """Format distinct seeds; more than 10 consecutive ones as a range."""
    numbers = sorted(set(seeds))
    if len(numbers) > 10 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _warm_up_exceptions(study: Study) -> str:
    """Name the kinds of schedulers that warm up under their own policy."""
    others = {cell.scheduler.kind for cell in study.cells if not warms_up_under_fcfs(cell.scheduler)}
    return f"; {', '.join(sorted(others))} under its own policy" if others else ""


def _left_out(result: MeasuredStudy) -> list[str]:
    """Return a note on jobs after the warm-up that are excluded because some run did not finish them."""
    measured = min(int(result.population(cell).sum()) for cell in result.cells)
    most = max(cell.jobs for cell in result.cells) - result.study.measure.warm_up
    if measured >= most:
        return []
    count = most - measured
    return [f"{_jobs(count)} did not finish in every run and {'is' if count == 1 else 'are'} excluded from all metrics."]


def cells_by_machine(result: MeasuredStudy) -> list[tuple[str, Sequence[CellResult]]]:
    """Group cells by the text of their varied machine values; "" if the machine does not vary."""
    groups: dict[str, list[CellResult]] = {}
    for cell in result.cells:
        name = ", ".join(str(value) for path, value in cell.parameters.items() if path.startswith("machine"))
        groups.setdefault(name, []).append(cell)
    return list(groups.items())


def _jobs(count: int) -> str:
    return f"{count:,} job{'' if count == 1 else 's'}"
