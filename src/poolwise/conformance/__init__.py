"""Checks that a policy, scheduler or model keeps its contract. Public: run them on your own.

Each `check_*` runs the object on small machines and returns one `Check` for each promise; a broken one says in a sentence
what was seen. `check` finds out by itself what it is given. In a test of your own:

    assert all(result.ok for result in poolwise.conformance.check(MyOrder()))
"""

from poolwise.conformance.cost import check_cost
from poolwise.conformance.dispatch import check
from poolwise.conformance.findings import Check
from poolwise.conformance.model import check_model
from poolwise.conformance.policies import check_backfill, check_order, check_placement
from poolwise.conformance.scheduler import check_scheduler

__all__ = [
    "Check",
    "check",
    "check_backfill",
    "check_cost",
    "check_model",
    "check_order",
    "check_placement",
    "check_scheduler",
]
