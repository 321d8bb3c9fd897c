"""Samplers of candidates: Optuna proposes them generation by generation and receives their objectives.

A sampler's state is not stored. Evaluated candidates are (`Evaluator`): a resumed search creates a sampler with the same
seed, answers its first proposals from the store, and so reaches the point at which the search stopped.
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
from poolwise.search.objectives import FARES, FareName
from poolwise.search.problem import OrderCandidate, OrderSearchProblem

JOURNAL = "optuna.journal"
"""File that Optuna's dashboard opens."""

FareRatios = Callable[[Sequence[OrderCandidate]], FloatArray]
"""Candidates -> (n_candidate, 4) logarithms of their ratios to the baseline, means over the training workloads."""


def sample(search: OrderSearchProblem, fare: FareRatios, folder: Path) -> tuple[list[OrderCandidate], FloatArray]:
    """Try as many candidates as the budget says.

    Returns them with their (n_candidate, 4) logarithms, and leaves the trials in the folder for Optuna's dashboard.
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
        rows = fare(generation)
        for trial, row in zip(trials, rows, strict=True):
            for name, value in excess(search, row).items():
                trial.set_constraint(name, value)
            study.tell(trial, [float(row[FARES.index(name)]) for name in search.objectives.minimize])
        candidates += generation
        logs += list(rows)
    _leave_journal(study, storage, folder)
    return candidates, np.array(logs)


def excess(search: OrderSearchProblem, logs: FloatArray) -> dict[FareName, float]:
    """By how much (4,) logarithms are beyond each constraint; 0 or less where it is kept."""
    return {name: float(logs[FARES.index(name)] - np.log(most)) for name, most in search.objectives.at_most.items()}


def keeps(search: OrderSearchProblem, logs: FloatArray) -> bool:
    """Whether (4,) logarithms keep all constraints."""
    return all(value <= 0 for value in excess(search, logs).values())


def _sampler(search: OrderSearchProblem) -> optuna.samplers.BaseSampler:
    seed, batch = search.budget.seed, search.budget.batch
    if search.budget.sampler == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    if search.budget.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    return optuna.samplers.NSGAIISampler(seed=seed, population_size=max(batch, 2))


def _settings(trial: Trial, search: OrderSearchProblem) -> dict[str, Any]:
    return {path: _chosen(trial, path, span) for path, span in search.space.items()}


def _chosen(trial: Trial, path: str, span: RangeSection) -> Any:
    """A value of a setting. Those of a list are known to the sampler by their places: they may be tables."""
    if span.values:
        return span.values[trial.suggest_categorical(path, list(range(len(span.values))))]
    assert span.least is not None and span.most is not None  # the section takes one of both
    return trial.suggest_float(path, span.least, span.most, log=span.log)


def _leave_journal(study: optuna.Study, storage: InMemoryStorage, folder: Path) -> None:
    """Copy the trials to a file that Optuna's dashboard opens; it appears whole or not at all."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{JOURNAL}.") as draft:
        file = Path(draft) / JOURNAL
        journal = JournalStorage(JournalFileBackend(str(file)))
        optuna.copy_study(from_study_name=study.study_name, from_storage=storage, to_storage=journal)
        file.replace(folder / JOURNAL)
