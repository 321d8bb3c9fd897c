"""Helpers for tests of broken objects: detection of a violated promise, and a scheduler to modify."""

from dataclasses import dataclass

import numpy as np

from poolwise.conformance import Check
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Decisions, Machine, Queue, Snapshot
from poolwise.schedulers.list import ListScheduler


def failed(results: tuple[Check, ...]) -> dict[str, str]:
    return {result.name: result.problem for result in results if not result.ok}


def only(results: tuple[Check, ...], name: str, says: str) -> None:
    """Exactly one promise is broken, and the sentence says so."""
    problems = failed(results)
    assert list(problems) == [name]
    assert says in problems[name]
    assert "\n" not in problems[name]
    assert any(str(result).startswith(f"failed  {name}: ") for result in results)


@dataclass(frozen=True)
class Bent(Scheduler, Dispatcher):
    """Delegates to a list scheduler; subclasses bend what it decides."""

    def open(self, machine: Machine, seed: int) -> "Bent":
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        return self.bend(ListScheduler().open(snapshot.machine, 0).schedule(queue, snapshot, changes), snapshot)

    def bend(self, decisions: Decisions, snapshot: Snapshot) -> Decisions:
        return decisions


draws = np.random.default_rng(0)
"""For what answers differently each time."""
