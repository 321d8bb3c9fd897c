"""Detect the kind of an object and check it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from poolwise.conformance.cost import COST_PROMISES, check_cost
from poolwise.conformance.findings import Check
from poolwise.conformance.model import MODEL_PROMISES, check_model
from poolwise.conformance.policies import (
    BACKFILL_PROMISES,
    ORDER_PROMISES,
    PLACEMENT_PROMISES,
    check_backfill,
    check_order,
    check_placement,
)
from poolwise.conformance.preemption import PREEMPTION_PROMISES, check_preemption
from poolwise.conformance.scheduler import SCHEDULER_PROMISES, check_scheduler
from poolwise.errors import InputError

CHECKS: Mapping[str, tuple[tuple[str, ...], Callable[[Any], tuple[Check, ...]]]] = {
    "priority": (ORDER_PROMISES, check_order),
    "place": (PLACEMENT_PROMISES, check_placement),
    "select": (BACKFILL_PROMISES, check_backfill),
    "stops": (PREEMPTION_PROMISES, check_preemption),
    "slowdown": (MODEL_PROMISES, check_model),
    "placing": (COST_PROMISES, check_cost),
    "open": (SCHEDULER_PROMISES, check_scheduler),
}
"""Method that identifies a kind of object -> its contract and check; schedulers come last, since backfills may have `open`."""


def check(thing: Any) -> tuple[Check, ...]:
    """Check a scheduler, queue order, placement, backfill, preemption, performance model or cost model on small machines.

    Parameters
    ----------
    thing
        The object, or its class, which is then configured with its defaults.

    Returns
    -------
    tuple of Check
        One per promise; `str` of a check is one line of text, and its `ok` is False if the promise is broken.

    Raises
    ------
    InputError
        The kind of the object is unknown, or the class needs settings.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.policies import SJF
    >>> results = poolwise.check(SJF())
    >>> print(results[0])
    ok      runs without an error
    >>> [str(result) for result in results if not result.ok]
    []
    """
    thing = configured(thing)
    return _kind_of(thing)[1](thing)


def promises_of(thing: Any) -> tuple[str, ...]:
    """Return the promises that `check` checks for an object, in the order of its results, without running the object."""
    return _kind_of(thing)[0]


def configured(thing: Any) -> Any:
    """Return the object, or an object of the class with its defaults; raise InputError if the class needs settings."""
    if not isinstance(thing, type):
        return thing
    try:
        return thing()
    except TypeError as error:
        raise InputError(
            f"{thing.__name__} has settings without defaults: {error}", remedy="pass a configured object"
        ) from error


def _kind_of(thing: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Check, ...]]]:
    for method, kind in CHECKS.items():
        if callable(getattr(thing, method, None)):
            return kind
    name = (thing if isinstance(thing, type) else type(thing)).__name__
    problem = f"{name} is not a scheduler, order, placement, backfill, preemption, performance model or cost model"
    raise InputError(problem, remedy=f"define one of the methods {', '.join(CHECKS)} (see poolwise.interfaces)")
