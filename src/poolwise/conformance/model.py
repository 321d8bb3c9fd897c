"""Checks of a performance model."""

from __future__ import annotations

import math

from poolwise.conformance.cases import RULE, Case, check_suitable_cases, compare_engines, devices, racks, state, units, walk
from poolwise.conformance.findings import DETERMINISTIC, PICKLES, RUNS, UNCHANGED, Check, Findings
from poolwise.interfaces import PerformanceModel
from poolwise.model import Changes, Fetch, Queue, Run, Snapshot
from poolwise.policies.order.priorities import FAIR
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler

SETUP = "returns a setup of whole nanoseconds, at least 0"
FETCH = "fetches for whole nanoseconds over links of the machine"
SLOWDOWN = "returns a finite slowdown above -1"
TOUCHES = "returns owners of the machine from touches"
HONEST = "returns from touches every owner that its slowdown depends on"
MODEL_PROMISES = (RUNS, PICKLES, DETERMINISTIC, UNCHANGED, SETUP, FETCH, SLOWDOWN, TOUCHES, HONEST, RULE)


def check_model(model: PerformanceModel, case: Case | None = None) -> tuple[Check, ...]:
    """Check a model for every run in every pass, on racks with pools, on nodes and devices in a network, and on units.

    A model that states fixed slowdowns (`PerformanceModel.fixed`) is also checked on racks with the compiled engine, which uses
    them. Your own `case` replaces the default cases; a model may decline some of these with an InputError. Returns one `Check`
    per promise.
    """
    findings, stated = Findings(*MODEL_PROMISES), "fixed" in vars(type(model))

    def ask(case: Case) -> None:
        walk(case, _RunVisitor(model, copy, findings).visit, model=model)
        for pools in ("rack", "system") if stated and "nodes" in case.machine.resources else ():
            compare_engines(ListScheduler(FAIR(), placement=RackPlacement(pools)), case, findings, model)

    with findings.running():
        copy = findings.pickled(model)
        check_suitable_cases((racks(), devices(), units()) if case is None else (case,), ask)
    return findings.checks()


class _RunVisitor:
    """Compares the answers of a model about each run from pass to pass."""

    def __init__(self, model: PerformanceModel, copy: PerformanceModel, findings: Findings) -> None:
        self.model, self.copy, self.findings = model, copy, findings
        self.seen: dict[tuple[int, str, bool], tuple[object, float]] = {}

    def visit(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        """Check every run."""
        before = state(queue, snapshot)
        for run in snapshot.runs():
            self._ask(run, snapshot)
        self.findings.require(UNCHANGED, state(queue, snapshot) == before, "a call changed the queue or the snapshot")

    def _ask(self, run: Run, snapshot: Snapshot) -> None:
        """Check the answers about one run, its work and its fetching."""
        model, require = self.model, self.findings.require
        setup, fetch, touches = model.setup(run, snapshot), model.fetch(run, snapshot), model.touches(run.placement, snapshot)
        require(SETUP, isinstance(setup, int) and setup >= 0, f"setup {setup!r} for run {run.id}")
        links = 0 if snapshot.machine.fabric is None else len(snapshot.machine.fabric.link)
        require(FETCH, fetch is None or _sound(fetch, links), f"{fetch!r} for run {run.id}")
        self._compare(run, snapshot, "slowdown", model.slowdown(run, snapshot), touches)
        if run.fetch is not None:
            self._compare(run, snapshot, "pace of fetching", model.fetch_slowdown(run, snapshot), run.fetch.touches)
        first = _answers(model, run, snapshot)
        for other in (model, self.copy):
            require(
                DETERMINISTIC,
                _answers(other, run, snapshot) == first,
                f"two calls about run {run.id} in the same state return different results",
            )

    def _compare(self, run: Run, snapshot: Snapshot, what: str, slowdown: float, touches: tuple[int, ...]) -> None:
        """Compare a slowdown, and the occupancy of the owners that it may depend on, with earlier ones in the same phase."""
        finite = isinstance(slowdown, float | int) and -1.0 < slowdown < math.inf
        self.findings.demand(SLOWDOWN, finite, f"{what} {slowdown!r} for run {run.id}")
        known_owners = all(isinstance(owner, int) and 0 <= owner < snapshot.machine.n_owner for owner in touches)
        owners = f"owners are 0 to {snapshot.machine.n_owner - 1}"
        self.findings.demand(TOUCHES, known_owners, f"touches returned {touches!r} for run {run.id}; {owners}")
        around = [(owner, snapshot.occupants(owner), snapshot.capacity[owner].tolist()) for owner in touches]
        phase = run.id, what, run.fetch is None
        earlier = self.seen.setdefault(phase, (around, slowdown))
        self.findings.require(
            HONEST,
            earlier[0] != around or earlier[1] == slowdown,
            f"the {what} of run {run.id} changed from {earlier[1]} to {slowdown}, but nothing on the owners {touches} changed",
        )
        self.seen[phase] = (around, slowdown)


def _answers(model: PerformanceModel, run: Run, snapshot: Snapshot) -> tuple[object, ...]:
    pace = 0.0 if run.fetch is None else model.fetch_slowdown(run, snapshot)
    return (
        model.setup(run, snapshot),
        model.fetch(run, snapshot),
        pace,
        model.slowdown(run, snapshot),
        model.touches(run.placement, snapshot),
    )


def _sound(fetch: Fetch, links: int) -> bool:
    """Return whether a fetch is valid: whole numbers, and routes over links that exist."""
    whole = isinstance(fetch.work, int) and isinstance(fetch.bandwidth, int) and fetch.work >= 0 < fetch.bandwidth
    ways = bool(fetch.routes) and all(fetch.routes)
    return whole and ways and all(0 <= link < links for route in fetch.routes for link in route)
