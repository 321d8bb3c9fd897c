"""Notes on a study's results, and a summary of its setup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from poolwise.files.factory import warm_up_policy
from poolwise.files.size_text import SizeText
from poolwise.metrics import Outcomes
from poolwise.presentation.format import rows_note
from poolwise.quantities import format_count, format_memory
from poolwise.simulation import SPARSE_SHARE
from poolwise.studies.measured import CellResult, MeasuredStudy
from poolwise.studies.study import Study


def notes(result: MeasuredStudy) -> list[str]:
    """Return notes on waiting and excluded jobs, rejected decisions, low use of pools, and warnings.

    `studies.diagnostics` reports jobs that can never run.
    """
    sentences: list[str] = []
    for machine, cells in cells_by_machine(result):
        first = cells[0]
        outcomes = result.outcomes(first)
        suffix = f" ({machine})" if machine else ""
        share = float(outcomes.needs_remote_memory.mean())
        if outcomes.pool_memory and outcomes.whole_nodes and share < SPARSE_SHARE:
            few, effect = (f"Only {100 * share:.2g} % of the jobs need", "little") if share else ("No job needs", "no")
            sentences.append(f"{few} remote memory{suffix}, so pools have {effect} effect.")
        waiting = max(cell.waiting for cell in cells)
        if waiting:
            sentences.append(f"{format_count(waiting, 'job')} never started{suffix}.")
    if result.study.measure.population == "common":
        sentences += _left_out(result)
    for what, verb in (("excluded", "excluded from the trace"), ("repaired", "changed while reading")):
        counts: dict[str, int] = {}
        for cell in result.cells:
            counts |= getattr(cell, what)
        sentences += [rows_note(count, verb, reason) for reason, count in sorted(counts.items())]
    canceled: Counter[str] = Counter()
    for facts in result.facts.values():
        canceled |= Counter(facts.get("canceled", {}))  # the maximum of each
    sentences += [
        f"At most {format_count(count, 'job')} {'was' if count == 1 else 'were'} canceled in any run: {reason}."
        for reason, count in sorted(canceled.items())
    ]
    refused = {reason: count for facts in result.facts.values() for reason, count in facts.get("refused", {}).items()}
    sentences += [f"The machine rejected scheduling decisions ({count:,}): {why}." for why, count in sorted(refused.items())]
    return sentences + sorted({warning for facts in result.facts.values() for warning in facts.get("warnings", ())})


def _node_memory(outcomes: Outcomes) -> str:
    most = outcomes.most_local_memory
    return format_memory(outcomes.local_memory) + ("" if most is None else f" to {format_memory(most)}")


def description(result: MeasuredStudy) -> list[tuple[str, str]]:
    """Return a summary of workload, machine, schedulers and measurement as (name, value) pairs."""
    study, first = result.study, result.study.cells[0]
    outcomes = result.outcomes(result.cells[0])
    measured = sorted({int(result.population(cell).sum()) for cell in result.cells})
    pairs = [
        (
            "workload",
            f"{Path(first.workload.path).name}, {format_count(len(outcomes), 'job')} starting at row {first.workload.first:,}",
        ),
        ("machine", f"{first.machine.name}: {format_count(outcomes.n_nodes, 'node')} with {_node_memory(outcomes)} each"),
        *((f"varied: {path}", ", ".join(str(value) for value in values)) for path, values in study.vary.items()),
        ("runs", runs_text(study)),
        ("warm-up", f"{format_count(first.warm_up, 'job')} under {warm_up_policy(cell.scheduler for cell in study.cells)}"),
        (
            "measured",
            " or ".join(format_count(count, "job") for count in measured) + f" ({study.measure.population} population)",
        ),
        ("seeds", seed_text(cell.seed for cell in study.cells)),
        ("engine", _engines(result)),
    ]
    return pairs


def runs_text(study: Study) -> str:
    """Count the runs of a study by their purpose, such as "3, 1 under FCFS without backfilling for fairness"."""
    more = [f"{len(keys):,} {purpose}" for purpose, keys in _further_runs(study).items() if keys]
    return ", ".join([f"{len(study.cells):,}", *more])


def _further_runs(study: Study) -> dict[str, set[str]]:
    """Return purpose -> keys of the runs that are not among the study's cells.

    A run with several purposes counts only for the first.
    """
    keys: dict[str, set[str]] = {}
    for runs, purpose in (
        (study.baselines, "under FCFS without backfilling for fairness"),
        (study.memory_baselines, "on the memory baseline"),
        (study.today.values(), "of today's configuration"),
    ):
        keys[purpose] = {cell.key for cell in runs}.difference((cell.key for cell in study.cells), *keys.values())
    return keys


def _engines(result: MeasuredStudy) -> str:
    """Name the engine, or each engine with the number of runs that used it."""
    engines = {"of the study": Counter(cell.engine for cell in result.cells)}
    for purpose, keys in _further_runs(result.study).items():
        engines[purpose] = Counter(str(result.facts[key]["engine"]) for key in keys)
    uses: dict[str, list[str]] = {}
    for purpose, counts in engines.items():
        for engine, count in sorted(counts.items()):
            uses.setdefault(engine, []).append(f"{count:,} {purpose}")
    return next(iter(uses)) if len(uses) == 1 else "; ".join(f"{name}: {', '.join(runs)}" for name, runs in uses.items())


def seed_text(seeds: Iterable[int]) -> str:
    """Format distinct seeds; more than 10 consecutive ones as a range."""
    numbers = sorted(set(seeds))
    if len(numbers) > 10 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _left_out(result: MeasuredStudy) -> list[str]:
    """Return a note on jobs after the warm-up that are excluded because some run did not finish them."""
    measured = min(int(result.population(cell).sum()) for cell in result.cells)
    most = max(cell.jobs for cell in result.cells) - result.study.measure.warm_up
    if measured >= most:
        return []
    count = most - measured
    verb = "is" if count == 1 else "are"
    return [f"{format_count(count, 'job')} did not finish in every run and {verb} excluded from all metrics."]


def cells_by_machine(result: MeasuredStudy) -> list[tuple[str, Sequence[CellResult]]]:
    """Group cells by a text of their varied machine values ("8 racks"); the text is "" if the machine does not vary."""
    groups: dict[str, list[CellResult]] = {}
    tables = result.study.cells[0].machine_tables
    for cell in result.cells:
        varied = ((path, value) for path, value in cell.parameters.items() if path.startswith("machine"))
        name = ", ".join(_setting(path, value, tables) for path, value in varied)
        groups.setdefault(name, []).append(cell)
    return list(groups.items())


def _setting(path: str, value: object, tables: Mapping[str, Any]) -> str:
    return SizeText.of(path, tables).setting(str(value)) if isinstance(value, int | float) else str(value)
