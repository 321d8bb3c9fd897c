"""Results of checks: one line per promise."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from poolwise.short_repr import short_repr
from poolwise.user_code import user_failure

RUNS = "runs without an error"
PICKLES = "is equal after pickling"
UNCHANGED = "leaves its inputs unchanged"
DETERMINISTIC = "is deterministic"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check: a promise, and what happened if it was broken.

    Attributes
    ----------
    name : the promise
    problem : one sentence, empty if the promise was kept
    tested : whether any case exercised it

    Examples
    --------
    >>> import poolwise
    >>> print(poolwise.Check("is deterministic", "two calls returned different priorities"))
    failed  is deterministic: two calls returned different priorities
    """

    __repr__ = short_repr

    name: str
    problem: str = ""
    tested: bool = True

    @property
    def ok(self) -> bool:
        """True if no violation was seen; `tested` states whether one could have been seen."""
        return not self.problem

    def __str__(self) -> str:
        if not self.tested:
            return f"-       {self.name}: not tested, no case exercises it"
        return f"ok      {self.name}" if self.ok else f"failed  {self.name}: {self.problem}"


class Broken(Exception):
    """Exception that ends a check: after a broken promise, further results are meaningless."""


class Findings:
    """Collector of the first problem of each promise."""

    def __init__(self, *names: str) -> None:
        self._problems = dict.fromkeys(names, "")
        self._tested: set[str] = set()

    def tested(self, *names: str) -> None:
        """Record that promises were exercised."""
        self._tested.update(names)

    def blame(self, name: str, problem: str) -> None:
        """Record a problem; only the first problem of each promise is kept."""
        self.tested(name)
        if not self._problems[name]:
            self._problems[name] = problem

    def require(self, name: str, holds: bool, problem: str) -> None:
        """Record that a promise was exercised, and a problem if it does not hold."""
        self.tested(name)
        if not holds:
            self.blame(name, problem)

    def demand(self, name: str, holds: bool, problem: str) -> None:
        """Record the result like `require`, and end the check if the promise is broken."""
        self.require(name, holds, problem)
        if not holds:
            raise Broken

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record an exception of the object as a problem."""
        try:
            yield
            self.tested(RUNS)
        except Broken:
            self.tested(RUNS)
        except Exception as error:  # a user's code may raise anything
            text = " ".join(str(error).split())
            raised = f"{type(error).__name__}: {text}" if text else type(error).__name__
            own = user_failure(error)
            self.blame(RUNS, f"raised {raised}" if own is None else f"raised {' '.join(own.split())}")

    def pickled(self, thing: Any) -> Any:
        """Return a pickled copy of the object, or the object itself if pickling fails."""
        try:
            other = pickle.loads(pickle.dumps(thing))
        except Exception as error:  # pickle raises what the object raises
            self.blame(PICKLES, f"pickling raised {type(error).__name__}: {error}")
            return thing
        self.require(PICKLES, bool(other == thing), "its copy is not equal (a frozen dataclass compares by its fields)")
        return other

    def checks(self) -> tuple[Check, ...]:
        """Return one check per promise, in the order of their names."""
        return tuple(Check(name, problem, name in self._tested) for name, problem in self._problems.items())
