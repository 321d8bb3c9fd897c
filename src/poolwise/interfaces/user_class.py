"""What a policy states of itself holds for the class that states it: one derived from it may do something else."""

from __future__ import annotations

from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Ruled(Protocol[T_co]):
    """A policy that may describe what it does as a rule."""

    def rule(self) -> T_co | None: ...


def rule_of(policy: _Ruled[T]) -> T | None:
    """Rule of a policy; None where its own class states none, whatever its base classes state: it may do something else."""
    return policy.rule() if "rule" in vars(type(policy)) else None


def speaks_for(kind: type, decides: str, says: str = "why") -> bool:
    """Whether what a class says stands in the class of the method that decides, or in one derived from it."""
    deciding, saying = (next(c for c in kind.__mro__ if name in vars(c)) for name in (decides, says))
    return deciding in saying.__mro__
