"""Statements of a class about its own methods: they do not hold for subclasses, which may behave differently."""

from __future__ import annotations

from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Ruled(Protocol[T_co]):
    """A policy that may describe its behavior as a rule."""

    def rule(self) -> T_co | None: ...


def rule_of(policy: _Ruled[T]) -> T | None:
    """Return the rule of a policy; None if its own class states none, whatever its base classes state."""
    return policy.rule() if "rule" in vars(type(policy)) else None


def defined_with(kind: type, method: str, statement: str = "why") -> bool:
    """Return whether `statement` is defined in the class that defines `method`, or in a subclass of it."""
    method_class, statement_class = (next(c for c in kind.__mro__ if name in vars(c)) for name in (method, statement))
    return method_class in statement_class.__mro__
