"""What checks find: one line for each promise."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from poolwise.user_code import failure_in

RUNS = "runs without an error"
PICKLES = "is equal after pickling"
UNCHANGED = "leaves its inputs unchanged"
DETERMINISTIC = "is deterministic"


@dataclass(frozen=True, slots=True)
class Check:
    """A promise and, if it was broken, what was seen.

    Attributes
    ----------
    name : the promise
    problem : one sentence, empty if nothing was seen that breaks the promise
    tested : whether the cases asked for it at all
    """

    name: str
    problem: str = ""
    tested: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing was seen that breaks the promise; `tested` says whether anything could have been."""
        return not self.problem

    def __str__(self) -> str:
        if not self.tested:
            return f"-       {self.name}: not tested, the cases never came to it"
        return f"ok      {self.name}" if self.ok else f"failed  {self.name}: {self.problem}"


class Broken(Exception):
    """Ends the run of a check: what follows a broken promise tells nothing more."""


class Findings:
    """Collects the first problem of each promise."""

    def __init__(self, *names: str) -> None:
        self._problems = dict.fromkeys(names, "")
        self._tested: set[str] = set()

    def tested(self, *names: str) -> None:
        """Note that promises were put to the test."""
        self._tested.update(names)

    def blame(self, name: str, problem: str) -> None:
        """Note a problem; only the first of each promise is kept."""
        self.tested(name)
        if not self._problems[name]:
            self._problems[name] = problem

    def require(self, name: str, kept: bool, problem: str) -> None:
        """Note that a promise was put to the test, and a problem unless it was kept."""
        self.tested(name)
        if not kept:
            self.blame(name, problem)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Turn an exception of the object into a problem."""
        try:
            yield
            self.tested(RUNS)
        except Broken:
            self.tested(RUNS)
        except Exception as error:  # whatever a user's code may raise is a finding here
            text = " ".join(str(error).split())
            raised = f"{type(error).__name__}: {text}" if text else type(error).__name__
            own = failure_in(error)
            self.blame(RUNS, f"raised {raised}" if own is None else f"raised {' '.join(own.split())}")

    def pickled(self, thing: Any) -> Any:
        """Send an object through pickle; the object itself where that fails."""
        try:
            other = pickle.loads(pickle.dumps(thing))
        except Exception as error:  # pickle raises what the object raises
            self.blame(PICKLES, f"pickling raised {type(error).__name__}: {error}")
            return thing
        self.require(PICKLES, bool(other == thing), "its copy differs (a frozen dataclass compares by its fields)")
        return other

    def checks(self) -> tuple[Check, ...]:
        """One check for each promise, in the order in which they were named."""
        return tuple(Check(name, problem, name in self._tested) for name, problem in self._problems.items())
