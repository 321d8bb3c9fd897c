"""Samplers of candidates: Optuna proposes them generation by generation and receives their objectives.

A sampler's state is not stored, but the evaluations of its candidates are. A resumed search creates a sampler with the same
seed, answers its first proposals from the store, and thus reaches the point at which the search stopped.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import Trial

from poolwise.arrays import FloatArray
from poolwise.search.file import RangeSection
from poolwise.search.objectives import OBJECTIVES, ObjectiveName
from poolwise.search.problem import OrderCandidate, OrderSearchProblem

JOURNAL = "optuna.journal"
"""Journal file for Optuna's dashboard."""

Evaluate = Callable[[Sequence[OrderCandidate]], FloatArray]
"""Maps candidates to (n_candidate, 4) log ratios to the baseline, averaged over the training workloads."""


def sample(search: OrderSearchProblem, evaluate: Evaluate, folder: Path) -> tuple[list[OrderCandidate], FloatArray]:
    """Evaluate as many candidates as the budget allows.

    Returns the candidates and their (n_candidate, 4) log ratios, and writes the trials to the folder for Optuna's dashboard.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    budget = search.budget
    storage, directions = InMemoryStorage(), [StudyDirection.MINIMIZE] * len(search.objectives.minimize)
    study = optuna.create_study(study_name=search.name, storage=storage, directions=directions, sampler=_sampler(search))
    candidates: list[OrderCandidate] = []
    logs: list[FloatArray] = []
    while len(candidates) < budget.candidates:
        trials = [study.ask() for _ in range(min(budget.batch, budget.candidates - len(candidates)))]
        generation = [search.candidate(f"candidate {trial.number}", _settings(trial, search)) for trial in trials]
        rows = evaluate(generation)
        for trial, row in zip(trials, rows, strict=True):
            for name, value in excess(search, row).items():
                trial.set_constraint(name, value)
            study.tell(trial, [float(row[OBJECTIVES.index(name)]) for name in search.objectives.minimize])
        candidates += generation
        logs += list(rows)
    _write_journal(study, storage, folder)
    return candidates, np.array(logs)


def excess(search: OrderSearchProblem, logs: FloatArray) -> dict[ObjectiveName, float]:
    """Return how much log ratios, (4,), exceed each constraint; at most 0 for a satisfied constraint."""
    return {name: float(logs[OBJECTIVES.index(name)] - np.log(most)) for name, most in search.objectives.at_most.items()}


def satisfies_constraints(search: OrderSearchProblem, logs: FloatArray) -> bool:
    """Return whether log ratios, (4,), satisfy all constraints."""
    return all(value <= 0 for value in excess(search, logs).values())


def _sampler(search: OrderSearchProblem) -> optuna.samplers.BaseSampler:
    seed, batch = search.budget.seed, search.budget.batch
    if search.budget.sampler == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    if search.budget.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    return optuna.samplers.NSGAIISampler(seed=seed, population_size=max(batch, 2))


def _settings(trial: Trial, search: OrderSearchProblem) -> dict[str, Any]:
    return {path: _suggest(trial, path, span) for path, span in search.space.items()}


def _suggest(trial: Trial, path: str, span: RangeSection) -> Any:
    """Suggest a value of a setting. The sampler sees values from a list as indices, because they may be tables."""
    if span.values:
        return span.values[trial.suggest_categorical(path, list(range(len(span.values))))]
    assert span.min is not None and span.max is not None  # RangeSection requires bounds or values
    return trial.suggest_float(path, span.min, span.max, log=span.log)


def _write_journal(study: optuna.Study, storage: InMemoryStorage, folder: Path) -> None:
    """Write the trials to a file for Optuna's dashboard, atomically."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{JOURNAL}.") as draft:
        file = Path(draft) / JOURNAL
        journal = JournalStorage(JournalFileBackend(str(file)))
        optuna.copy_study(from_study_name=study.study_name, from_storage=storage, to_storage=journal)
        file.replace(folder / JOURNAL)
