"""Detect the kind of an object and check it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from poolwise.conformance.cost import check_cost
from poolwise.conformance.findings import Check
from poolwise.conformance.model import check_model
from poolwise.conformance.policies import check_backfill, check_order, check_placement
from poolwise.conformance.scheduler import check_scheduler
from poolwise.errors import InputError

CHECKS: Mapping[str, Callable[[Any], tuple[Check, ...]]] = {
    "priority": check_order,
    "place": check_placement,
    "select": check_backfill,
    "slowdown": check_model,
    "placing": check_cost,
    "open": check_scheduler,
}
"""Method that identifies a kind of object -> its checks; backfills may have `open` too, so schedulers come last."""


def check(thing: Any) -> tuple[Check, ...]:
    """Check a scheduler, queue order, placement, backfill, performance model or cost model on small machines.

    Parameters
    ----------
    thing
        The object; a class is configured with its defaults.

    Returns
    -------
    tuple of Check
        One per promise; `str` of each is a line, and `ok` is False for a broken one.

    Raises
    ------
    InputError
        The object is of no known kind, or the class needs settings.

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
    if isinstance(thing, type):
        try:
            thing = thing()
        except TypeError as error:
            raise InputError(
                f"{thing.__name__} has settings without defaults: {error}", remedy="pass a configured object"
            ) from error
    for method, checks in CHECKS.items():
        if callable(getattr(thing, method, None)):
            return checks(thing)
    problem = f"{type(thing).__name__} is not a scheduler, order, placement, backfill, performance model or cost model"
    remedy = f"define one of the methods {', '.join(CHECKS)} (see poolwise.interfaces)"
    raise InputError(problem, remedy=remedy)
