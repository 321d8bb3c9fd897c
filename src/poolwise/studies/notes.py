"""What a reader of a study's results must be told, in sentences; and what was run, in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from poolwise.api import SPARSE_SHARE
from poolwise.files.factory import warms_up_alike
from poolwise.studies.measured import CellResult, MeasuredStudy
from poolwise.studies.study import Study
from poolwise.units import format_memory


def notes(result: MeasuredStudy) -> list[str]:
    """Sentences on waiting and left-out jobs, refused decisions, sparse use of pools, and warnings.

    `studies.sanity` tells of jobs that can never run.
    """
    said: list[str] = []
    for machine, cells in cells_by_machine(result):
        first = cells[0]
        outcomes = result.outcomes(first)
        where = f" ({machine})" if machine else ""
        share = float((outcomes.memory > outcomes.local_memory).mean())
        if outcomes.pool_memory and outcomes.whole_nodes and share < SPARSE_SHARE:
            said.append(f"Only {100 * share:.2g} % of the jobs need remote memory{where}: pools can hardly matter here.")
        waiting = max(cell.waiting for cell in cells)
        if waiting:
            said.append(f"{waiting:,} jobs were still waiting when nothing more could happen{where}.")
    if result.study.measure.population == "common":
        said += _left_out(result)
    for what, verb in (("excluded", "left out of the trace"), ("repaired", "changed while reading")):
        counts: dict[str, int] = {}
        for cell in result.cells:
            counts |= getattr(cell, what)
        said += [f"{count:,} rows were {verb}: {reason}." for reason, count in sorted(counts.items())]
    refused = {reason: count for facts in result.facts.values() for reason, count in facts.get("refused", {}).items()}
    said += [f"The machine refused decisions of a scheduler ({count:,}): {why}." for why, count in sorted(refused.items())]
    return said + sorted({warning for facts in result.facts.values() for warning in facts.get("warnings", ())})


def description(result: MeasuredStudy) -> list[tuple[str, str]]:
    """Workload, machine, schedulers and measurement of a study."""
    study, first = result.study, result.study.cells[0]
    outcomes = result.outcomes(result.cells[0])
    measured = sorted({int(result.population(cell).sum()) for cell in result.cells})
    pairs = [
        ("workload", f"{Path(first.trace.path).name}, {_jobs(len(outcomes))} from row {first.trace.first:,} on"),
        ("machine", f"{first.machine.name}: {outcomes.n_nodes:,} nodes with {format_memory(outcomes.local_memory)} each"),
        *((f"varied: {path}", ", ".join(str(value) for value in values)) for path, values in study.vary.items()),
        ("runs", f"{len(study.cells)}, and {len(study.runs) - len(study.cells)} under FCFS without backfilling for fairness"),
        ("warm-up", f"{_jobs(first.warm_up)} under FCFS without backfilling{_but(study)}"),
        ("measured", " or ".join(_jobs(count) for count in measured) + f" ({study.measure.population} population)"),
        ("seeds", seed_words(cell.seed for cell in study.cells)),
        ("engine", ", ".join(sorted({cell.engine for cell in result.cells}))),
    ]
    return pairs


def seed_words(seeds: Iterable[int]) -> str:
    """Every seed once; many that follow each other by the first and the last."""
    numbers = sorted(set(seeds))
    if len(numbers) > 10 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _but(study: Study) -> str:
    """Which schedulers warm up in another way."""
    others = {cell.scheduler.kind for cell in study.cells if not warms_up_alike(cell.scheduler)}
    return f"; {', '.join(sorted(others))} as it is" if others else ""


def _left_out(result: MeasuredStudy) -> list[str]:
    """How many jobs after the warm-up the comparison leaves out, since some run did not finish them."""
    measured = min(int(result.population(cell).sum()) for cell in result.cells)
    most = max(cell.jobs for cell in result.cells) - result.study.measure.warm_up
    if measured >= most:
        return []
    return [f"{_jobs(most - measured)} that some run could not finish are left out of the measures of every run."]


def cells_by_machine(result: MeasuredStudy) -> list[tuple[str, Sequence[CellResult]]]:
    """Cells by what was varied of the machine, in words; "" where nothing was."""
    groups: dict[str, list[CellResult]] = {}
    for cell in result.cells:
        name = ", ".join(str(value) for path, value in cell.parameters.items() if path.startswith("machine"))
        groups.setdefault(name, []).append(cell)
    return list(groups.items())


def _jobs(count: int) -> str:
    return f"{count:,} job{'' if count == 1 else 's'}"
