"""Checks that a policy, scheduler or model keeps its contract, and a fake cluster with faults. Public: use them in your tests.

`check` detects the kind of an object; each `check_*` checks one kind. They run the object on small machines and return one
`Check` per promise; for a broken promise, it states the problem. In a test:

    @poolwise.parametrize_with_checks(MyOrder())
    def test_contract(check):
        check()
"""

from poolwise.conformance.cases import Case, racks
from poolwise.conformance.cost import check_cost
from poolwise.conformance.dispatch import check
from poolwise.conformance.fake_cluster import FakeCluster, Fault, calm_starts, survive
from poolwise.conformance.findings import Check
from poolwise.conformance.model import check_model
from poolwise.conformance.parametrize import parametrize_with_checks
from poolwise.conformance.policies import check_backfill, check_order, check_placement
from poolwise.conformance.preemption import check_preemption
from poolwise.conformance.scheduler import check_scheduler

__all__ = [
    "Case",
    "Check",
    "FakeCluster",
    "Fault",
    "calm_starts",
    "check",
    "check_backfill",
    "check_cost",
    "check_model",
    "check_order",
    "check_placement",
    "check_preemption",
    "check_scheduler",
    "parametrize_with_checks",
    "racks",
    "survive",
]
