"""Checks of the parts of a list scheduler: queue order, placement, backfill."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np

from poolwise.conformance.cases import (
    RULE,
    Case,
    check_suitable_cases,
    compare_engines,
    devices,
    modules,
    racks,
    state,
    units,
    walk,
)
from poolwise.conformance.findings import DETERMINISTIC, PICKLES, RUNS, UNCHANGED, Check, Findings
from poolwise.conformance.scheduler import SCHEDULER_PROMISES, check_scheduler
from poolwise.engines.order_contract import OrderContract
from poolwise.errors import InputError
from poolwise.interfaces import BackfillPolicy, OrderKind, PlacementPolicy, QueuePolicy, RecalculatedOrder, SchedulingPass
from poolwise.interfaces.capped import KIND_CLASSES
from poolwise.interfaces.order import opened
from poolwise.interfaces.placement import signatures_of
from poolwise.interfaces.scheduling_pass import check_takes_pass
from poolwise.interfaces.user_class import rule_of
from poolwise.model import Changes, JobTable, Placement, Queue, Refusal, Snapshot, Start
from poolwise.model.run_table import RunTable
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FAIR, FCFS
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler

SHAPE = "returns one float64 priority without NaN per waiting job"
KIND = "keeps the promise of its kind"
FITS = "places only on free resources"
ENOUGH = "gives a job all its nodes"
EMPTY = "places on the empty machine every job that it places on a busy one"
PREFILTER = "filters out only jobs that it cannot place"
SIGNATURE = "treats jobs with the same signature alike"
REFUSES = "refuses unknown requests without raising"
NOWHERE = "something that no machine has"
CHOICE = "starts each waiting job at most once, within the free resources"
ORDER_PROMISES = (RUNS, PICKLES, DETERMINISTIC, UNCHANGED, SHAPE, KIND)
PLACEMENT_PROMISES = (RUNS, PICKLES, DETERMINISTIC, UNCHANGED, FITS, ENOUGH, EMPTY, PREFILTER, REFUSES, SIGNATURE, RULE)
_OWN_PROMISES = (RUNS, UNCHANGED, CHOICE, RULE)
BACKFILL_PROMISES = tuple(dict.fromkeys((*_OWN_PROMISES, *SCHEDULER_PROMISES)))


def check_order(order: QueuePolicy, case: Case | None = None) -> tuple[Check, ...]:
    """Check a queue order in every pass of a run under another scheduler.

    Your own `case` replaces the default cases (racks with pools, shared nodes with devices). An order may decline one of these
    with an InputError; the same applies to the other checks. Returns one `Check` per promise.
    """
    findings = Findings(*ORDER_PROMISES)
    contract = OrderContract(order)
    called = False

    def visit(queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        nonlocal called
        if not len(queue):
            return
        called = True
        before = state(queue, snapshot)
        value = order.priority(queue, snapshot)
        findings.require(UNCHANGED, state(queue, snapshot) == before, "a call changed the queue or the snapshot")
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        problem = f"returned shape {shape} of {dtype} for {len(queue)} jobs, not ({len(queue)},) of float64"
        findings.demand(SHAPE, shape == (len(queue),) and dtype == np.float64, problem)
        findings.require(SHAPE, not bool(np.isnan(value).any()), f"NaN for the job in row {queue.jobs[np.isnan(value)][:1]}")
        for other in (order, copy):
            same = np.array_equal(value, other.priority(queue, snapshot), equal_nan=True)
            findings.require(DETERMINISTIC, same, "two calls with the same queue returned different priorities")
        if order.kind in ("opaque", "capped"):
            findings.tested(KIND)  # these kinds promise nothing
        else:
            problem = contract.problem(queue, snapshot, value)
            if contract.repeats or problem:
                findings.require(KIND, not problem, problem)

    def ask(case: Case) -> None:
        nonlocal called
        called = False
        contract.seen.clear()
        walk(case, visit)
        findings.require(RUNS, called, "no job ever waited, so nothing was checked")

    with findings.running():
        copy = findings.pickled(order)
        kind = getattr(order, "kind", None)
        if kind not in get_args(OrderKind):
            findings.demand(KIND, False, f"kind is {kind!r}, not one of {', '.join(get_args(OrderKind))}")
        needed = KIND_CLASSES.get(order.kind)
        if needed is not None and not isinstance(order, needed):
            problem = f"kind is {kind!r}, but the class does not derive from {needed.__name__}, whose methods engines call"
            findings.demand(KIND, False, problem)
        if kind == "recalculated" and not isinstance(opened(order), RecalculatedOrder):
            findings.demand(KIND, False, "kind is 'recalculated', but open() does not return a RecalculatedOrder")
        check_suitable_cases((racks(), devices()) if case is None else (case,), ask)
    return findings.checks()


def check_placement(placement: PlacementPolicy, case: Case | None = None) -> tuple[Check, ...]:
    """Check a placement policy for every waiting job in every pass of a run, now and at all expected releases.

    A placement that states a rule (`PlacementPolicy.rule`) is also checked on racks with the compiled engine, which follows the
    rule. Your own `case` replaces the default cases. Returns one `Check` per promise.
    """
    findings = Findings(*PLACEMENT_PROMISES)

    def visit(queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        before = state(queue, snapshot)
        placed = []
        numbers, answers = signatures_of(placement, snapshot.machine, snapshot.table), dict[int, Placement | Refusal]()
        for row in queue.jobs.tolist():
            job = snapshot.table.job(row)
            place = placement.place(job, snapshot)
            if numbers is not None:
                same = answers.setdefault(int(numbers[row]), place) == place
                findings.require(
                    SIGNATURE, same, f"the job in row {row} is treated differently from one with the same signature"
                )
            for other in (placement, copy):
                findings.require(DETERMINISTIC, other.place(job, snapshot) == place, f"two placements for the job in row {row}")
            placed.append(not isinstance(place, Refusal))
            if not isinstance(place, Refusal):
                _inspect(place, row, snapshot, findings)
                empty = placement.place(job, snapshot.empty())
                findings.require(EMPTY, not isinstance(empty, Refusal), f"the empty machine refuses the job in row {row}")
        if len(queue):
            prefiltered = placement.prefilter(queue.jobs, snapshot.free[None], snapshot)
            lost = queue.jobs[np.array(placed) & ~prefiltered]
            findings.require(PREFILTER, not len(lost), f"filters out the job in row {lost[:1]}, although it can place it")
            _prefilter_states(placement, int(queue.jobs[0]), snapshot, findings)
            _check_unknown_request(placement, int(queue.jobs[0]), snapshot, findings)
        findings.require(UNCHANGED, state(queue, snapshot) == before, "a call changed the queue or the snapshot")

    def ask(case: Case) -> None:
        walk(case, visit)
        if rule_of(placement) is not None:
            compare_engines(ListScheduler(FAIR(), placement=placement), case, findings)

    with findings.running():
        copy = findings.pickled(placement)
        itself = ListScheduler(FCFS(), NoBackfill(), placement)
        own = [replace(suited, walker=itself) for suited in (devices(), modules(), units())]
        check_suitable_cases((racks(), *own) if case is None else (case,), ask)
    return findings.checks()


def _inspect(placement: Placement, row: int, snapshot: Snapshot, findings: Findings) -> None:
    need = np.zeros_like(snapshot.free)
    placement.give_to(need)
    fits = bool((need <= snapshot.free).all()) and int(placement.amount.min()) >= 0
    findings.require(FITS, fits, f"the placement of the job in row {row} does not fit what is free at {snapshot.now} ns")
    requested = snapshot.table.job(row).request("nodes") * snapshot.table.job(row).tasks
    if requested and "nodes" in snapshot.machine.resources:
        got = int(need[:, snapshot.machine.resource("nodes")].sum())
        findings.require(ENOUGH, got == requested, f"the job in row {row} requests {requested} nodes and got {got}")


def _prefilter_states(placement: PlacementPolicy, row: int, snapshot: Snapshot, findings: Findings) -> None:
    """Check calls of `prefilter` for one job in many states, as made by backfills."""
    for ends, free in snapshot.futures():
        prefiltered = placement.prefilter(np.array([row], dtype=np.int64), free, snapshot)
        for k, end in enumerate(ends.tolist()):
            fits = not isinstance(placement.place(snapshot.table.job(row), snapshot.at(end)), Refusal)
            findings.require(
                PREFILTER,
                bool(prefiltered[k]) or not fits,
                f"filters out the job in row {row} at {end} ns, although it can place it then",
            )


def _check_unknown_request(placement: PlacementPolicy, row: int, snapshot: Snapshot, findings: Findings) -> None:
    """Place a job that requests a resource which no machine has, since such a job may arrive at a running cluster."""
    job = snapshot.table.taken(np.array([row], dtype=np.int64))
    requests = {**job.requests, NOWHERE: np.ones(1, dtype=np.int64)}
    table = JobTable(job.id, job.submit, job.requested, job.tasks, requests, job.attributes)
    free = snapshot.machine.capacity
    idle = Snapshot(snapshot.now, snapshot.machine, table, free, free, RunTable(free.size), snapshot.estimate)
    findings.tested(REFUSES)
    try:
        placement.place(table.job(0), idle)
    except InputError as error:
        findings.blame(REFUSES, f"for a job that requests an unknown resource, place raised: {error.message}")


def check_backfill(backfill: BackfillPolicy, case: Case | None = None) -> tuple[Check, ...]:
    """Check a backfill in every pass of a run under FCFS and EASY, then let it run the machine itself.

    A backfill that states a rule (`BackfillPolicy.rule`) is also checked with the compiled engine, which follows the rule. Your
    own `case` replaces the racks with pools. Returns one `Check` per promise.
    """
    findings = Findings(*_OWN_PROMISES)
    placement = RackPlacement()

    def visit(queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        empty = snapshot.empty()
        fitting = [not isinstance(placement.place(snapshot.table.job(job), empty), Refusal) for job in queue.jobs.tolist()]
        jobs = queue.jobs[np.array(fitting, dtype=np.bool_)]
        if not len(jobs):
            return
        priority, before = FAIR().priority(queue.only(jobs), snapshot), state(queue, snapshot)
        original = priority.copy()
        starts = list(backfill.select(SchedulingPass(queue.only(jobs), priority, snapshot, placement)))
        same = state(queue, snapshot) == before and np.array_equal(original, priority)
        findings.require(UNCHANGED, same, "a call changed the queue, the priorities or the snapshot")
        _inspect_starts(starts, jobs.tolist(), snapshot, findings)

    with findings.running():
        suited = case if case is not None else racks()
        check_takes_pass(backfill, "select")
        walk(suited, visit)
        if rule_of(backfill) is not None:
            compare_engines(ListScheduler(FAIR(), backfill), suited, findings)
    results = {result.name: result for result in findings.checks()}
    for result in check_scheduler(ListScheduler(FCFS(), backfill), case):
        if not result.ok or result.name not in results:
            results[result.name] = result
    return tuple(results.values())


def _inspect_starts(starts: list[Start], waiting: list[int], snapshot: Snapshot, findings: Findings) -> None:
    need = np.zeros_like(snapshot.free)
    for start in starts:
        if start.job not in waiting:
            findings.blame(CHOICE, f"it starts the job in row {start.job}, which does not wait or was started already")
            return
        waiting = [job for job in waiting if job != start.job]
        start.placement.give_to(need)
    findings.require(CHOICE, bool((need <= snapshot.free).all()), f"its starts at {snapshot.now} ns exceed the free resources")
