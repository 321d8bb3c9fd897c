"""Slurm's schedulers while nodes complete: a job has ended on them, and the controller has not heard yet that they are free."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.interfaces import PlacementPolicy, SchedulingPass
from poolwise.model import Job, Refusal, Snapshot, Start
from poolwise.policies.backfill.slurm_plan import BackfillPlan, ExpectedStart
from poolwise.quantities import SECOND
from tests.helpers.slurm_day import RecordedTimes


class Completing(NamedTuple):
    """A node between the end of a job and the time at which the controller can use it again (ns)."""

    node: str
    begin: int
    end: int


class CompletingPlan(BackfillPlan):
    """A backfill pass that counts completing nodes as free, but starts a job on them one second from now only.

    `completing` is (n_owner,) whether an owner is completing.
    """

    completing: BoolArray

    def find_start(self, job: Job, placement: PlacementPolicy) -> ExpectedStart | None:
        expected = super().find_start(job, placement)
        if expected is None or expected.start > self.now:
            return expected
        reserved, closed = self._reserved(self.now, self.now + job.requested), self._windows.closed(self.now, job)
        tested, _ = self._first_fit(job, reserved, closed, placement, self.now + 1)
        if tested is not None and self.completing[list(tested.placement.owners())].any():
            return ExpectedStart(self.now + SECOND, tested.placement)
        free = np.where(self.completing[:, None], 0, np.maximum(self.present(job).free, 0))
        place = placement.place(job, self._state.imagined(self._state.now, free))
        return expected if isinstance(place, Refusal) else expected._replace(placement=place)


@dataclass(frozen=True)
class CompletingNodes(RecordedTimes):
    """Slurm's schedulers at recorded times, given which nodes, by the names of owners, are completing when."""

    completing: tuple[Completing, ...] = ()

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        shut, snapshot = self._shut(cycle.snapshot), cycle.snapshot
        if self.runs_main(snapshot.now) and shut.any():
            hidden = snapshot.imagined(snapshot.now, np.where(shut[:, None], 0, snapshot.free))
            cycle = replace(cycle, snapshot=hidden)
        return super().select(cycle)

    def plan(self, snapshot: Snapshot) -> BackfillPlan:
        limits = self.parameters
        plan = CompletingPlan(
            snapshot, limits.window, limits.resolution, busy_nodes=limits.busy_nodes, groups_ends=limits.groups_ends
        )
        plan.completing = self._shut(snapshot)
        return plan

    def _shut(self, snapshot: Snapshot) -> BoolArray:
        """Return whether each owner is completing, or is inside a node that is, (n_owner,)."""
        machine = snapshot.machine
        names = {each.node for each in self.completing if each.begin <= snapshot.now < each.end}
        shut = np.isin(machine.owners, list(names))
        inside: BoolArray = (machine.home >= 0) & shut[machine.home]
        return shut | inside
