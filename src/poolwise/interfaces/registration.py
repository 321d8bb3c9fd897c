"""Registration of classes under names, which `poolwise.registry` looks up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

GROUPS = (
    "orders",
    "backfills",
    "placements",
    "admissions",
    "preemptions",
    "costs",
    "models",
    "schedulers",
    "formats",
    "generators",
    "memory_uses",
    "machine_formats",
    "affinities",
    "metrics",
    "methods",
    "reproductions",
    "plans",
    "plots",
)
"""Kinds of components that are found by name."""
REGISTERED: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
"""Group -> name -> registered object."""


def register(group: str, name: str) -> Callable[[T], T]:
    """Register a class under a name, as a decorator.

    A class in your own file needs no registration: "file.py:Name" works wherever a name does. In your own package, an entry
    point of the group "poolwise.orders" (or another group) imports the class when its name is used.

    Parameters
    ----------
    group
        "orders", "backfills", "placements", "admissions", "preemptions", "costs", "models", "schedulers", "metrics",
        "generators", "formats" or another group of `GROUPS`.
    name
        Name that study files and the command line use.

    Returns
    -------
    Callable
        A decorator that returns its class unchanged.

    Raises
    ------
    ValueError
        The group does not exist, or another class has the name.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import AgingOrder, register
    >>> @register("orders", "oldest")
    ... class Oldest(AgingOrder):
    ...     pass
    >>> type(poolwise.list_scheduler("oldest").order) is Oldest
    True
    """
    if group not in REGISTERED:
        raise ValueError(f"no group '{group}' to register '{name}' in; groups: {', '.join(GROUPS)}")

    def add(thing: T) -> T:
        if name in REGISTERED[group] and REGISTERED[group][name] is not thing:
            raise ValueError(f"'{name}' is registered twice in {group}")
        REGISTERED[group][name] = thing
        return thing

    return add
