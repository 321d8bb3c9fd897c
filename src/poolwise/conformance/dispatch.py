"""Find out what an object is and check it."""

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
"""Method by which a kind of object is known -> its checks; a backfill may be opened too, so schedulers come last."""


def check(thing: Any) -> tuple[Check, ...]:
    """Check a scheduler, queue order, placement, backfill, performance or cost model; a class is configured with its defaults.

    Raises InputError for anything else.
    """
    if isinstance(thing, type):
        try:
            thing = thing()
        except TypeError as error:
            raise InputError(
                f"{thing.__name__} cannot be configured without settings: {error}", remedy="give a configured object"
            ) from error
    for method, checks in CHECKS.items():
        if callable(getattr(thing, method, None)):
            return checks(thing)
    raise InputError(
        f"{type(thing).__name__} is no scheduler, order, placement, backfill, performance or cost model",
        remedy=f"it needs one of the methods {', '.join(CHECKS)} (see poolwise.interfaces)",
    )
