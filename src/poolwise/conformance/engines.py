"""Comparison of what an object does with the rule that it states: two engines must make the same schedule."""

from __future__ import annotations

import numpy as np

from poolwise.conformance.cases import Case
from poolwise.conformance.findings import Findings
from poolwise.engines import simulate
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.model import Kind

RULE = "follows the rule that it states"


def compare_engines(scheduler: Scheduler, case: Case, findings: Findings, truth: PerformanceModel | None = None) -> None:
    """Compare the schedule of the reference engine with that by the stated rule, also where pools are small."""
    scarce = case.machine.capacity.copy()
    scarce[case.machine.of_kind(Kind.POOL)] //= 3
    for machine in (case.machine, case.machine.with_capacity(scarce)):
        called, by_rule = (
            simulate(machine, case.workload, scheduler, truth=truth or case.truth, engine=engine).schedule
            for engine in ("reference", "auto")
        )
        for column, verb in (("job_start", "starts"), ("job_end", "ends")):
            other = np.flatnonzero(getattr(called, column) != getattr(by_rule, column))
            findings.require(RULE, not len(other), f"by its rule the job in row {other[:1]} {verb} at another time")
        same = called.owner.tobytes() == by_rule.owner.tobytes() and called.amount.tobytes() == by_rule.amount.tobytes()
        findings.require(RULE, same, "by its rule a job has another placement")
