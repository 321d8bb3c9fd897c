"""One pass of Slurm's backfill: the expected start of each job in turn, and the reservation made for it.

The rules were derived from the log of Slurm 22.05.8 (DebugFlags=Backfill,BackfillMap,SelectType); `tests/policies/` checks
them against all decisions in recorded days. slurm.conf(5) describes bf_resolution, bf_window and bf_window_linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.interfaces import PlacementPolicy
from poolwise.interfaces.user_class import rule_of
from poolwise.model import Job, Kind, Placement, Refusal, Snapshot
from poolwise.model.eligibility import eligible_owners, eligible_sets
from poolwise.model.rules import NodeRule
from poolwise.policies.backfill.slurm_windows import BackfillWindows, end_of_limit
from poolwise.policies.placement.avoid_windows import without_windows
from poolwise.policies.placement.nodes.busy import BusyNodes
from poolwise.policies.placement.nodes.gpu_weights import GPU, GpuWeights
from poolwise.policies.placement.nodes.layout import node_layout
from poolwise.quantities import NEVER, OVERDUE, SECOND

PRECISION: Final = 30 * SECOND
"""First period in which ends of runs are grouped; it doubles with each period ("bf_window_linear": the default doubles)."""


class ExpectedStart(NamedTuple):
    """Expected start (ns) and placement of a job."""

    start: int
    placement: Placement


class BackfillPlan:
    """State of a backfill pass: the runs, including those it has started, and the reservations of waiting jobs.

    Times are in whole seconds, rounded down. A reservation extends from the expected start to the end of the job's time limit,
    both rounded down to the resolution, and covers the whole of each shared node, with its devices.

    Parameters
    ----------
    state
        The state at the start of the pass.
    window
        Planning horizon (ns), Slurm's bf_window.
    resolution
        Time resolution of reservations (ns), Slurm's bf_resolution.
    busy_nodes
        Whether to prefer nodes in use for reservations, Slurm's bf_busy_nodes (`BusyNodes`).
    groups_ends
        Whether to group the ends of runs, as select/cons_tres does, or to try a job after each end, as select/linear does.
    """

    def __init__(
        self, snapshot: Snapshot, window: int, resolution: int, *, busy_nodes: bool = False, groups_ends: bool = True
    ) -> None:
        self.now, self._window, self._resolution, self._busy_nodes = _seconds(snapshot.now), window, resolution, busy_nodes
        self._groups_ends = groups_ends
        begin = self.now // resolution * resolution
        # segments of the window in order: ns, and the (n_segment, n_owner, n_resource) amounts reserved for waiting jobs
        self._begin, self._until, self._held = np.array([begin]), np.array([begin + window]), np.zeros_like(snapshot.free)[None]
        machine = snapshot.machine
        nodes, shared = machine.kind == Kind.NODE, np.ones(machine.n_owner, dtype=np.bool_)
        if "nodes" in machine.resources:
            shared = machine.capacity[:, machine.resource("nodes")] == 0
        self._shared = nodes & shared
        self._individual = self._shared | ((machine.home >= 0) & self._shared[machine.home])
        self._counted = np.flatnonzero((nodes & ~shared) | (machine.kind == Kind.POOL))
        self._windows = BackfillWindows(machine, snapshot.now, begin + window, resolution)
        self._weights: GpuWeights | None = None
        self._set_state(snapshot)

    def _set_state(self, snapshot: Snapshot) -> None:
        """Recompute the releases of the runs in a state, ordered by expected end, with ties in queue order.

        An overdue run is expected to end one second from now.
        """
        self._state = snapshot
        soon = self.now + OVERDUE
        key = snapshot.table.order_key
        ending = sorted((max(_seconds(run.expected_end), soon), key(run.job), run.id) for run in snapshot.runs())
        runs = [snapshot.run(number) for _, _, number in ending]
        self._ends = np.array([end for end, _, _ in ending], dtype=np.int64)
        released = np.zeros((len(runs), *snapshot.free.shape), dtype=np.int64)
        for amounts, run in zip(released, runs, strict=True):
            run.placement.give_to(amounts)
        self._holds = released > 0
        self._free = snapshot.free + np.concatenate([np.zeros_like(snapshot.free)[None], released.cumsum(axis=0)])

    def weighs_gpus(self, placement: PlacementPolicy) -> bool:
        """Return whether the weights of nodes with GPUs matter to a placement."""
        return self._gpu_weights(placement) is not None

    def submit(self, job: Job) -> None:
        """Update the weights of nodes for the test of a submitted job, which assumes that the machine is empty."""
        if self._weights is not None:
            closed = self._windows.closed(self.now, job)
            self._weights.restore(self._large_enough(job), closed)
            self._weights.lower(job, self._state.capacity, closed)

    def plan_job(self, job: Job, placement: PlacementPolicy, *, reserve: bool = True) -> ExpectedStart | None:
        """Find a job's start. A job that can start now becomes a run; otherwise its expected start is reserved.

        Return None if no start is known. Starts beyond the window get no reservation; with `reserve=False`, no expected start
        gets one.
        """
        expected = self.find_start(job, placement)
        if expected is None:
            return None
        if expected.start <= self.now:
            self._restore_weights(job)
            self._set_state(self._state.with_started(job.index, expected.placement))
        elif reserve and expected.start <= self.now + self._window:
            self._reserve(expected, job)
        return expected

    def find_start(self, job: Job, placement: PlacementPolicy) -> ExpectedStart | None:
        """Find the expected start of a job; return None if no start is known.

        The job is first tried from now on, with all reservations up to the end of its limit; it fits once enough runs have
        ended. If a reservation is released by then, the job is tried again from that instant; if it would conflict with a later
        reservation, it is tried again from its own start. Reserved windows: see `BackfillWindows`.
        """
        begin, area, windows = self.now, self._area(job), self._windows
        nodes = area & (self._state.machine.kind == Kind.NODE)
        while True:
            begin = windows.opens(begin, job, nodes)
            end, closed = end_of_limit(begin, job), windows.closed(begin, job)
            reserved, later = self._reserved(begin, end), self._first_decrease(begin, end, area & ~closed)
            if (nodes & closed).any() and (again := windows.next_trial(begin)) is not None:
                later = again if later is None else min(later, again)
            expected, free = self._first_fit(job, reserved, closed, placement, begin)
            if (weights := self._gpu_weights(placement)) is not None:
                weights.lower(job, free, self._is_reserved(reserved) | closed)
            if expected is not None:
                expected = expected._replace(start=max(expected.start, begin))
                if expected.start <= self.now:
                    return expected
                if later is None or expected.start <= later:
                    if expected.start == begin or not self._conflicts(expected, job):
                        return expected
                    later = expected.start
            if later is None:
                return None
            begin = later

    def may_start(self, jobs: IntArray, placement: PlacementPolicy) -> BoolArray:
        """Return a mask of the jobs, (k,), that may start now; all others do not fit even without reservations."""
        return placement.prefilter(jobs, self._state.free[None], self._state)

    def starts_now(self, job: Job, placement: PlacementPolicy) -> bool:
        """Return whether a job fits from now to the end of its time limit, in addition to all reservations."""
        reserved, closed = self._reserved(self.now, end_of_limit(self.now, job)), self._windows.closed(self.now, job)
        expected, _ = self._first_fit(job, reserved, closed, placement, self.now)
        return expected is not None and expected.start <= self.now

    def present(self, job: Job) -> Snapshot:
        """Return the state now, minus the amounts reserved up to the end of a job's limit; some amounts may be negative."""
        reserved = self._reserved(self.now, end_of_limit(self.now, job))
        return self._state.imagined(self._state.now, self._state.free - self._held[reserved].max(axis=0, initial=0))

    def _reserved(self, begin: int, end: int) -> BoolArray:
        """Return the segments in an interval, (n_segment,)."""
        return (self._until > begin) & (self._begin <= end)

    def _first_decrease(self, begin: int, end: int, area: BoolArray) -> int | None:
        """Return when reservations on an owner in `area`, (n_owner,), first fall below their maximum since `begin`, or None."""
        ahead, met, held = self._until > begin, self._reserved(begin, end), self._held[:, area]
        most = np.maximum.accumulate(np.where(met[:, None, None], held, 0))
        less = np.flatnonzero(ahead[:-1] & (held[1:] < most[:-1]).any(axis=(1, 2)))
        return int(self._until[less[0]]) if len(less) else None

    def _area(self, job: Job) -> BoolArray:
        """Return the owners whose releases matter to a job, (n_owner,): all except shared nodes outside its partitions.

        Features are ignored.
        """
        machine, sets = self._state.machine, eligible_sets(self._state.machine, job.table)
        name, _ = sets.value[int(sets.of[job.index])]
        area: BoolArray = eligible_owners(machine, name, "") | ~self._shared
        inside = np.flatnonzero(machine.home >= 0)
        area[inside] = area[machine.home[inside]]
        return area

    def _is_reserved(self, reserved: BoolArray) -> BoolArray:
        """Return whether any amount of each owner, (n_owner,), is reserved in some segments."""
        return np.asarray((self._held[reserved] > 0).any(axis=(0, 2)))

    def _gpu_weights(self, placement: PlacementPolicy) -> GpuWeights | None:
        """Return the weights of nodes with GPUs; None for a placement that disregards them, or without such nodes."""
        rule, machine = rule_of(without_windows(placement)), self._state.machine
        if not isinstance(rule, NodeRule) or not rule.weighs_gpus:
            return None
        if self._weights is None and GPU in node_layout(machine).known:
            self._weights = GpuWeights(machine)
        return self._weights

    def _restore_weights(self, job: Job) -> None:
        """Restore the weights of nodes as a job starts now, and lower them if it requests GPUs."""
        if self._weights is not None:
            reserved = self._is_reserved(self._reserved(self.now, end_of_limit(self.now, job)))
            reserved |= self._windows.closed(self.now, job)
            self._weights.restore(self._large_enough(job), reserved)
            self._weights.lower(job, self._state.free, reserved)

    def _first_fit(
        self, job: Job, reserved: BoolArray, closed: BoolArray, placement: PlacementPolicy, begin: int
    ) -> tuple[ExpectedStart | None, IntArray]:
        """Return the first start at which a job fits beyond all reservations as runs end, and the free amounts at the last try.

        The start is None if the job never fits. It may precede `begin`: the job then fits at `begin`.

        Shared nodes are individual: a job cannot use a node that is reserved at any time in the interval. Counted resources
        (pools and exclusive nodes) only need to be available at each time. Owners closed by windows, (n_owner,), are not
        available at any start.
        """
        held = self._held[reserved]
        most = held.max(axis=0, initial=0)
        times, over = [self.now], [0]
        usable = self._large_enough(job) & ~closed
        for time, count in self._tested_instants((self._state.capacity > most) & usable[:, None]):
            times.append(time)
            over.append(count)
        free, rows = self._free[over] - most, self._counted
        if len(rows):
            ended = np.maximum(np.array(over)[:, None], self._ended_by(self._begin[reserved]))
            each = self._free[ended[..., None], rows] - held[:, rows]  # (n_time, n_segment, n_counted, n_resource)
            free[:, rows] = np.minimum(self._free[over][:, rows], each.min(axis=1, initial=NEVER))
        free = np.where(closed[:, None], 0, np.maximum(free, 0))
        row = np.array([job.index], dtype=np.int64)
        for k in np.flatnonzero(placement.prefilter(row, free, self._state)).tolist():
            chosen = placement
            if self._busy_nodes and over[k] > 0:
                chosen = self._on_busy_nodes()
            elif max(times[k], begin) > self.now:
                chosen = self._by_weights(job, without_windows(placement))
            place = chosen.place(job, self._state.imagined(max(times[k], self._state.now), free[k]))
            if not isinstance(place, Refusal):
                return ExpectedStart(times[k], place), free[k]
        return None, free[-1]

    def _large_enough(self, job: Job) -> BoolArray:
        """Return a mask of the owners, (n_owner,), without shared nodes that never fit a part of a job, and their devices.

        Slurm compares cores and memory, and considers partitions and features, but not generic resources.
        """
        machine, capacity = self._state.machine, self._state.capacity
        sets = eligible_sets(machine, job.table)
        enough: BoolArray = eligible_owners(machine, *sets.value[int(sets.of[job.index])]).copy()
        compared = ("cores",) if (machine.kind == Kind.POOL).any() else ("cores", "memory")  # memory can come from a pool
        for name in compared:
            if name in machine.resources:
                enough &= capacity[:, machine.resource(name)] >= job.request(name)
        enough |= ~self._shared
        inside = np.flatnonzero(machine.home >= 0)
        enough[inside] = enough[machine.home[inside]]
        return enough

    def _by_weights(self, job: Job, placement: PlacementPolicy) -> PlacementPolicy:
        """Return a placement that chooses nodes by lowered weights, for a start later than now.

        The test of a job with GPUs lowers the weights of all nodes that it could use by the same amount.
        """
        weights, rule = self._gpu_weights(placement), rule_of(placement)
        if weights is None or job.request(GPU) or not isinstance(rule, NodeRule):
            return placement
        return weights.lowered(rule)

    def _on_busy_nodes(self) -> PlacementPolicy:
        """Return the placement that prefers the nodes in use."""
        machine = self._state.machine
        used: BoolArray = np.asarray(self._holds.any(axis=(0, 2)))
        used[machine.home[used & (machine.home >= 0)]] = True
        return BusyNodes(~used[node_layout(machine).nodes])

    def _tested_instants(self, usable: BoolArray) -> Iterator[tuple[int, int]]:
        """Yield the instants at which a job is tried, and the number of runs that have ended by then.

        Runs that end within one period are grouped. The first period ends `PRECISION` after the first whole multiple of
        `PRECISION` that follows the first end. Each further period is twice as long and follows without a gap. Runs that hold
        none of the `usable` (n_owner, n_resource) amounts are skipped, along with the test of whether the period has ended.
        Without `groups_ends`, each end is a group.
        """
        mine: BoolArray = np.asarray((self._holds & usable).any(axis=(1, 2)))
        ends, period, k = self._ends.tolist(), PRECISION, 0
        until: int | None = None
        while k < len(ends):
            last, first = -1, True
            while k < len(ends):
                end, touches = ends[k], bool(mine[k])
                k += 1
                if not touches:
                    continue
                if first:
                    until = end + PRECISION - end % PRECISION if until is None else until
                    until += max(-((until + period - end) // period), 0) * period
                last, first = end, False
                if not self._groups_ends or (k < len(ends) and until is not None and ends[k] > until + period):
                    break
            if last < 0:
                return
            yield last, k
            period *= 2

    def _span(self, expected: ExpectedStart, job: Job) -> tuple[int, int]:
        """Return the interval for which a start is reserved."""
        step = self._resolution
        return expected.start // step * step, end_of_limit(expected.start, job) // step * step

    def _conflicts(self, expected: ExpectedStart, job: Job) -> bool:
        """Return whether a start would use amounts that are reserved for other jobs in its interval.

        Shared nodes may have runs that end later.
        """
        (begin, end), amounts = self._span(expected, job), self._amounts(expected.placement)
        met = (self._begin < end) & (self._until > begin)
        free = self._free[self._ended_by(np.maximum(expected.start, self._begin[met]))]
        free[:, self._individual] = self._state.capacity[self._individual]
        return bool((amounts > np.maximum(free - self._held[met], 0)).any())

    def _ended_by(self, times: IntArray) -> IntArray:
        """Return the number of runs that have ended by each time (ns), (k,)."""
        return self._ends.searchsorted(times, side="right")

    def _reserve(self, expected: ExpectedStart, job: Job) -> None:
        """Add a reservation to the segments in its interval, which are cut at its begin and end."""
        begin, end = self._span(expected, job)
        inside = [(self._begin < at) & (at < self._until) for at in (begin, end)]
        cuts = [at for at, where in zip((begin, end), inside, strict=True) if where.any()]
        self._held = np.repeat(self._held, 1 + np.sum(inside, axis=0), axis=0)
        self._begin, self._until = (np.sort(np.append(times, cuts).astype(np.int64)) for times in (self._begin, self._until))
        self._held[(begin <= self._begin) & (self._until <= end)] += self._amounts(expected.placement)

    def _amounts(self, placement: Placement) -> IntArray:
        """Return the amounts that a placement reserves, (n_owner, n_resource): all of each shared node and its devices."""
        held, home = np.zeros_like(self._state.free), self._state.machine.home
        placement.give_to(held)
        used = np.asarray((held > 0).any(axis=1))
        used[home[used & (home >= 0)]] = True
        nodes = self._shared & used
        whole = nodes | ((home >= 0) & nodes[home])
        held[whole] = self._state.capacity[whole]
        return held


def _seconds(time: int) -> int:
    """Round a time (ns) down to a whole second."""
    return time // SECOND * SECOND
