"""What a part states of itself for fast engines, against what it does: two engines make one schedule."""

from __future__ import annotations

import numpy as np

from poolwise.conformance.cases import Case
from poolwise.conformance.findings import Findings
from poolwise.engines import simulate
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.model import Kind

RULE = "does what the rule that it states says"


def compare_engines(scheduler: Scheduler, case: Case, findings: Findings, truth: PerformanceModel | None = None) -> None:
    """Compare what a part does with what fast engines work out from its rule, also where pools are small."""
    scarce = case.machine.capacity.copy()
    scarce[case.machine.of_kind(Kind.POOL)] //= 3
    for machine in (case.machine, case.machine.with_capacity(scarce)):
        asked, told = (
            simulate(machine, case.workload, scheduler, truth=truth or case.truth, engine=engine).schedule
            for engine in ("reference", "auto")
        )
        for at, what in (("job_start", "starts"), ("job_end", "ends")):
            other = np.flatnonzero(getattr(asked, at) != getattr(told, at))
            findings.require(RULE, not len(other), f"by its rule the job in row {other[:1]} {what} at another time")
        same = asked.owner.tobytes() == told.owner.tobytes() and asked.amount.tobytes() == told.amount.tobytes()
        findings.require(RULE, same, "by its rule a job is placed elsewhere")
