"""Which candidates are tried: Optuna's samplers choose them, generation by generation, and are told how they fared.

Nothing of a sampler is kept when a search stops. What was tried is (`trying.Trying`), so a search that begins again asks a new
sampler with the same seed, answers at once what is known, and so comes to the same place and goes on from there.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial

from poolwise.arrays import FloatArray
from poolwise.search.fares import FARES
from poolwise.search.file import RangeSection
from poolwise.search.question import Candidate, Search

JOURNAL = "optuna.journal"
"""File that Optuna's dashboard opens."""
EXCESS = "excess"
"""Attribute of a trial: by how much (logarithms) it is beyond each of the constraints."""

Told = Callable[[Sequence[Candidate]], FloatArray]
"""Candidates -> (n_candidate, 4) logarithms of their ratios to the baseline, means over the training workloads."""


def sample(search: Search, fare: Told, folder: Path) -> tuple[list[Candidate], FloatArray]:
    """Try as many candidates as the budget says.

    Returns them with their (n_candidate, 4) logarithms, and leaves the trials in the folder for Optuna's dashboard.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    budget = search.budget
    storage, directions = InMemoryStorage(), ["minimize"] * len(search.objectives.minimize)
    study = optuna.create_study(study_name=search.name, storage=storage, directions=directions, sampler=_sampler(search))
    candidates: list[Candidate] = []
    logs: list[FloatArray] = []
    while len(candidates) < budget.candidates:
        trials = [study.ask() for _ in range(min(budget.batch, budget.candidates - len(candidates)))]
        generation = [search.candidate(f"candidate {trial.number}", _settings(trial, search)) for trial in trials]
        rows = fare(generation)
        for trial, row in zip(trials, rows, strict=True):
            trial.set_user_attr(EXCESS, excess(search, row))
            study.tell(trial, [float(row[FARES.index(name)]) for name in search.objectives.minimize])
        candidates += generation
        logs += list(rows)
    _leave_journal(study, storage, folder)
    return candidates, np.array(logs)


def excess(search: Search, logs: FloatArray) -> list[float]:
    """By how much (4,) logarithms are beyond each constraint; 0 or less where it is kept."""
    return [float(logs[FARES.index(name)] - np.log(most)) for name, most in search.objectives.at_most.items()]


def _sampler(search: Search) -> optuna.samplers.BaseSampler:
    seed, batch = search.budget.seed, search.budget.batch
    bounded = _excess if search.objectives.at_most else None
    if search.budget.sampler == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # constraints; the version is pinned
        if search.budget.sampler == "tpe":
            return optuna.samplers.TPESampler(seed=seed, constraints_func=bounded)
        return optuna.samplers.NSGAIISampler(seed=seed, population_size=max(batch, 2), constraints_func=bounded)


def _excess(trial: FrozenTrial) -> Sequence[float]:
    found: Sequence[float] = trial.user_attrs[EXCESS]
    return found


def _settings(trial: Trial, search: Search) -> dict[str, Any]:
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
