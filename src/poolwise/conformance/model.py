"""The promises of a performance model."""

from __future__ import annotations

import math

from poolwise.conformance.cases import Case, devices, on_those_that_suit, racks, state, units, walk
from poolwise.conformance.findings import DETERMINISTIC, PICKLES, RUNS, UNCHANGED, Broken, Check, Findings
from poolwise.interfaces import PerformanceModel
from poolwise.model import Changes, Queue, Run, Snapshot

SETUP = "gives a setup of whole nanoseconds, at least 0"
SLOWDOWN = "gives a finite slowdown above -1"
TOUCHES = "names owners of the machine in touches"
HONEST = "names in touches all that its slowdown depends on"


def check_model(model: PerformanceModel, case: Case | None = None) -> tuple[Check, ...]:
    """Ask a model about every run at every pass, on racks with pools, on nodes and devices in a network, on units.

    Parameters
    ----------
    case
        One case of your own instead. Of the default ones a model may decline one with an InputError.
    """
    findings = Findings(RUNS, PICKLES, DETERMINISTIC, UNCHANGED, SETUP, SLOWDOWN, TOUCHES, HONEST)

    def ask(case: Case) -> None:
        walk(case, _Look(model, copy, findings).visit, truth=model)

    with findings.running():
        copy = findings.pickled(model)
        on_those_that_suit((racks(), devices(), units()) if case is None else (case,), ask)
    return findings.checks()


class _Look:
    """Compares what a model says of a run from pass to pass."""

    def __init__(self, model: PerformanceModel, copy: PerformanceModel, findings: Findings) -> None:
        self.model, self.copy, self.findings = model, copy, findings
        self.seen: dict[int, tuple[object, float]] = {}

    def visit(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        """Ask about every run."""
        before = state(queue, snapshot)
        for run in snapshot.runs():
            self._ask(run, snapshot)
        self.findings.require(UNCHANGED, state(queue, snapshot) == before, "asking it changed the queue or the snapshot")

    def _ask(self, run: Run, view: Snapshot) -> None:
        model, require = self.model, self.findings.require
        setup, slowdown = model.setup(run, view), model.slowdown(run, view)
        touches = model.touches(run.placement, view)
        require(SETUP, isinstance(setup, int) and setup >= 0, f"setup {setup!r} for run {run.id}")
        if not (isinstance(slowdown, float | int) and -1.0 < slowdown < math.inf):
            self.findings.blame(SLOWDOWN, f"slowdown {slowdown!r} for run {run.id}")
            raise Broken
        if not all(isinstance(owner, int) and 0 <= owner < view.machine.n_owner for owner in touches):
            self.findings.blame(TOUCHES, f"touches {touches!r} for run {run.id}, of {view.machine.n_owner} owners")
            raise Broken
        for other in (model, self.copy):
            again = (other.setup(run, view), other.slowdown(run, view), other.touches(run.placement, view))
            require(DETERMINISTIC, again == (setup, slowdown, touches), f"two answers about run {run.id} in one state")
        around = [(owner, view.occupants(owner), view.capacity[owner].tolist()) for owner in touches]
        known = self.seen.setdefault(run.id, (around, slowdown))
        require(
            HONEST,
            known[0] != around or known[1] == slowdown,
            f"the slowdown of run {run.id} went from {known[1]} to {slowdown} while nothing changed on the owners {touches}",
        )
        self.seen[run.id] = (around, slowdown)
