"""Checks of a preemption policy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.conformance.cases import Case, racks, state, walk
from poolwise.conformance.findings import PICKLES, RUNS, UNCHANGED, Check, Findings
from poolwise.conformance.scheduler import SCHEDULER_PROMISES, check_scheduler
from poolwise.interfaces import PreemptionPolicy, SchedulingPass, Stop
from poolwise.model import Changes, Partition, QualityOfService, Queue, Snapshot
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler

RUNNING = "stops only running runs, each at most once"
WAKES = "wakes the scheduler only in the future"
_OWN_PROMISES = (RUNS, PICKLES, UNCHANGED, RUNNING, WAKES)
PREEMPTION_PROMISES = tuple(dict.fromkeys((*_OWN_PROMISES, *SCHEDULER_PROMISES)))


def check_preemption(policy: PreemptionPolicy, case: Case | None = None) -> tuple[Check, ...]:
    """Check a preemption policy for every waiting job in every pass of a run, then let a scheduler use it.

    Your own `case` replaces the default: racks with partitions of three tiers, and three QOS. Returns one `Check` per promise.
    """
    findings, placement = Findings(*_OWN_PROMISES), RackPlacement()

    def visit(queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        cycle = SchedulingPass(queue, FCFS().priority(queue, snapshot), snapshot, placement)
        before, running = state(queue, snapshot), {run.id for run in snapshot.runs()}
        for job in queue.jobs.tolist():
            stops = list(policy.stops(job, cycle))
            strange = [stop for stop in stops if not isinstance(stop, Stop) or stop.run not in running]
            findings.require(RUNNING, not strange, f"for the job in row {job}, it returned {strange[:1]}")
            numbers = [stop.run for stop in stops if isinstance(stop, Stop)]
            findings.require(RUNNING, len({*numbers}) == len(numbers), f"for the job in row {job}, it stops a run twice")
        wakeup = policy.next_wakeup(cycle)
        findings.require(WAKES, wakeup is None or wakeup > snapshot.now, f"at {snapshot.now} ns, the next wake-up is {wakeup}")
        findings.require(UNCHANGED, state(queue, snapshot) == before, "a call changed the queue or the snapshot")

    suited = tiered() if case is None else case
    with findings.running():
        findings.pickled(policy)
        policy.check(suited.machine, suited.workload.table)
        walk(suited, visit)
    results = {result.name: result for result in findings.checks()}
    for result in check_scheduler(ListScheduler(preemption=policy), suited):
        if not result.ok or result.name not in results:
            results[result.name] = result
    return tuple(results.values())


def tiered() -> Case:
    """Return the case of racks with three partitions in different tiers, each with all nodes, and with three QOS."""
    plain, names = racks(), ("low", "middle", "high")
    everywhere = np.ones(plain.machine.n_owner, dtype=np.bool_)
    machine = replace(
        plain.machine,
        node_sets=dict.fromkeys(names, everywhere),
        partitions=tuple(Partition(name, tier=tier) for tier, name in enumerate(names, start=1)),
        qos=tuple(QualityOfService(name) for name in names),
    )
    workload = plain.workload
    named = np.array(names)[np.arange(len(workload)) * 7 % len(names)]
    attributes = {**workload.attributes, "partition": named, "qos": named}
    return replace(plain, workload=replace(workload, attributes=attributes), machine=machine)
