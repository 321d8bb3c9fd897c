"""Statements of a class about its own behavior: a subclass inherits them unless it overrides a method.

A rule or a fixed slowdown lets compiled engines reproduce the behavior of a class. It stays true for a subclass that only adds
names or changes settings. A subclass that overrides a method or property may behave differently, so the statement no longer
applies.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Ruled(Protocol[T_co]):
    """A policy that may describe its behavior as a rule."""

    def rule(self) -> T_co | None: ...


def rule_of(policy: _Ruled[T]) -> T | None:
    """Return the rule of a policy; None if it states none, or if a subclass overrides a method of the class that states it."""
    return policy.rule() if statement_holds(type(policy), "rule") else None


@lru_cache(maxsize=1024)
def statement_holds(kind: type, statement: str) -> bool:
    """Return whether a statement of a class, its own or inherited, describes its behavior.

    Parameters
    ----------
    kind
        Class of a policy, scheduler or performance model.
    statement
        Method that makes the statement, such as "rule".
    """
    mro = kind.__mro__
    stating = next((k for k, base in enumerate(mro) if statement in vars(base)), None)
    if stating is None:
        return False
    behavior = {
        name
        for base in mro[stating:]
        for name, value in vars(base).items()
        if not name.startswith("__")
        and (callable(value) or isinstance(value, property | cached_property | classmethod | staticmethod))
    }
    return behavior.isdisjoint({name for base in mro[:stating] for name in vars(base)} - {"check"})
