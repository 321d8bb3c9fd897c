"""Snapshots: the machine as a scheduler sees it now, and as it will be if running jobs end as expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.model.decision import Start
from poolwise.model.history import Accounting, RunHistory
from poolwise.model.job_table import JobTable
from poolwise.model.machine import Machine
from poolwise.model.memory_use import MemoryInUse
from poolwise.model.placement import Placement
from poolwise.model.releases import free_after_releases
from poolwise.model.run import Fetch, Run
from poolwise.model.run_table import RunTable
from poolwise.quantities import HORIZON, OVERDUE, with_slowdown


class Estimate(Protocol):
    """Methods of a performance model that a snapshot calls; `interfaces.PerformanceModel` defines them."""

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """Models that the model consists of; call `model_parts` to read them."""
        ...

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        """Return the setup time (ns), before anything else."""
        ...

    def fetch(self, run: Run, snapshot: Snapshot) -> Fetch | None:
        """Return the data that must be transferred before work begins."""
        ...

    def fetch_slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the extra time per unit of fetching."""
        ...

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the extra time per unit of reference work."""
        ...

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the owners whose occupancy changes the slowdown."""
        ...


def model_parts(model: Estimate) -> tuple[Estimate, ...]:
    """Return the models that a model consists of: the model itself, unless its own class states parts.

    A subclass may behave differently, so the parts of its base class do not apply to it.
    """
    return model.parts if "parts" in vars(type(model)) else (model,)


class Snapshot:
    """The state of a platform at one instant, read-only. It contains expected ends, never true ones.

    Two methods answer every question of backfilling, for any mix of resources: `at(t)` applies the expected releases
    until t, and `with_started(...)` imagines a start. `without(...)` imagines that runs are stopped. Each returns another
    snapshot.

    Attributes
    ----------
    now : int, ns
    machine : the machine; owners that left have no capacity
    table : the jobs that have arrived
    capacity, free : (n_owner, n_resource) int64, read-only
    runs : the running runs, indexed by expected end and by owner
    estimate : performance model from which the scheduler estimates run times
    progress : function of a run number and a time (ns) that returns the work done, ns; None if unknown
    work : (n_job,) int64, reference ns of each job's work, estimated by the requested times. Only the views that a
        platform gives to the true performance model contain the true durations
    may_grow : whether owners may still join or capacity may come back, so that a job which never fits now may fit later
    freed_at : time (ns) of the latest end or resize of a run, or change of the machine; -1 before the first
    history : runs that have ended; None if the platform does not keep them
    traffic : (n_owner,) MB/s over each link as measured on a real cluster; None if it is not measured
    in_use : memory that runs use now; None if it is not measured

    Examples
    --------
    Policies receive snapshots as arguments of their methods. This backfill prints what it sees:

    >>> import poolwise
    >>> class Watch(poolwise.policies.Easy):
    ...     def select(self, cycle):
    ...         now = cycle.snapshot
    ...         print(now.now // 10**9, now.n_run, now.free[0].tolist())
    ...         return super().select(cycle)
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), backfill=Watch(), engine="reference")
    0 0 [1, 0]
    60 0 [1, 0]
    """

    __slots__ = (
        "_ended",
        "_extra",
        "_on_owner",
        "_progress",
        "_real",
        "_runs",
        "_stopped",
        "_work",
        "capacity",
        "estimate",
        "free",
        "freed_at",
        "history",
        "in_use",
        "machine",
        "may_grow",
        "now",
        "table",
        "traffic",
    )

    def __init__(
        self,
        now: int,
        machine: Machine,
        table: JobTable,
        capacity: IntArray,
        free: IntArray,
        runs: RunTable,
        estimate: Estimate,
        progress: Callable[[int, int], float] | None = None,
        *,
        work: IntArray | None = None,
        may_grow: bool = False,
        freed_at: int = -1,
        history: RunHistory | None = None,
        traffic: FloatArray | None = None,
        in_use: MemoryInUse | None = None,
    ) -> None:
        self.now, self.machine, self.table, self.estimate = now, machine, table, estimate
        self.capacity = capacity if not capacity.flags.writeable else _read_only(capacity)
        self.free = _read_only(free)
        self._work = work
        self.may_grow, self.freed_at, self.history, self.traffic = may_grow, freed_at, history, traffic
        self.in_use = in_use
        self._runs, self._progress = runs, progress
        self._extra: tuple[Run, ...] = ()
        self._on_owner: dict[int, tuple[int, ...]] | None = None  # owner -> imagined runs that touch it; None until needed
        self._ended: int | None = None  # runs expected to end by this time are gone
        self._stopped: frozenset[int] = frozenset()  # runs that are imagined to be stopped
        self._real = now  # the platform's present time, by which runs are overdue

    def _copy(self, now: int, free: IntArray) -> Snapshot:
        other = Snapshot(
            now,
            self.machine,
            self.table,
            self.capacity,
            free,
            self._runs,
            self.estimate,
            self._progress,
            work=self._work,
            may_grow=self.may_grow,
            freed_at=self.freed_at,
            history=self.history,
            traffic=self.traffic,
            in_use=self.in_use,
        )
        other._extra, other._ended, other._real, other._stopped = self._extra, self._ended, self._real, self._stopped
        return other

    @property
    def work(self) -> IntArray:
        """(n_job,) reference ns of each job's work, estimated by the requested times; true in the views of the true model."""
        return self.table.requested if self._work is None else self._work

    def __repr__(self) -> str:
        counts = f"{self.n_run:,} runs on {self.machine.n_owner:,} owners, {len(self.table):,} jobs arrived"
        return f"<Snapshot at {self.now} ns: {counts}>"

    def free_amount(self, resource: str, *, owner: str | int | None = None, rack: int | None = None) -> int:
        """Return the free amount of a resource on one owner, in one rack, or on the whole machine.

        Parameters
        ----------
        resource
            Name of the resource; the amount is 0 if the machine does not have it.
        owner
            Name or number of the only owner to count.
        rack
            Number of the only rack to count.

        Returns
        -------
        int
            Base units (MiB, MB/s, cores, nodes, devices).

        Raises
        ------
        InputError
            The machine has no owner of that name.

        Examples
        --------
        >>> import poolwise
        >>> class Watch(poolwise.policies.Easy):
        ...     def select(self, cycle):
        ...         now = cycle.snapshot
        ...         print(now.free_amount("nodes", rack=1), now.free_amount("memory", owner="rack1.pool"))
        ...         return super().select(cycle)
        >>> machine = poolwise.Machine.of_racks(2, 4, pool="1 GiB")
        >>> workload = poolwise.Workload.of(["0 s"], "1 min")
        >>> run = poolwise.simulate(workload, machine, backfill=Watch(), engine="reference")
        4 1024
        """
        if resource not in self.machine.resources:
            return 0
        column = self.free[:, self.machine.resource(resource)]
        if owner is not None:
            return int(column[self.machine.owner(owner) if isinstance(owner, str) else owner])
        return int(column.sum() if rack is None else column[self.machine.rack == rack].sum())

    # Runs

    @property
    def version(self) -> int:
        """Number that changes whenever a run starts, ends or is re-estimated; a key for caches of a dispatcher."""
        return self._runs.version

    @property
    def arrangement(self) -> int | None:
        """Number of the current arrangement of runs, a key for caches of performance models; None in imagined states."""
        return None if self._imagines else self._runs.arrangement

    @property
    def n_run(self) -> int:
        """Number of running runs, including imagined ones."""
        return len(self._runs) - len(self._stopped) + len(self._extra) if self._ended is None else sum(1 for _ in self.runs())

    def runs(self) -> Iterator[Run]:
        """Iterate over the running runs, imagined ones last."""
        yield from (run for run in self._runs if not self._gone(run))
        yield from self._extra

    def accounting(self) -> Accounting:
        """Return the accounting data of the runs so far, as columns."""
        job, start = np.array([(run.job, run.start) for run in self.runs()], dtype=np.int64).reshape(-1, 2).T
        return Accounting(self.now, self.machine, self.table, self.history, job, start)

    def run(self, number: int) -> Run:
        """Return a run by its number; negative numbers are runs imagined by `with_started`."""
        return self._extra[-1 - number] if number < 0 else self._runs[number]

    def occupants(self, owner: int) -> tuple[int, ...]:
        """Return the runs that touch an owner: those placed on it and those whose speed depends on it."""
        if not self._imagines:
            return tuple(self._runs.occupants(owner))
        here = tuple(n for n in self._runs.occupants(owner) if not self._gone(self._runs[n]))
        if self._on_owner is None:
            self._on_owner = {}
            for run in self._extra:
                for touched in self._touched(run):
                    self._on_owner[touched] = (*self._on_owner.get(touched, ()), run.id)
        return here + self._on_owner.get(owner, ())

    def work_left(self, number: int) -> float:
        """Return the work that a run is still expected to need, in reference ns, at least 0."""
        run = self.run(number)
        done = self._progress(number, self.now) if self._progress is not None and number >= 0 else 0.0
        return max(float(self.work[run.job]) - done, 0.0)

    def memory_of(self, run: Run) -> int:
        """Return the MiB that a run uses on each of its nodes now; if that is not measured, the MiB that its job requested."""
        measured = None if self.in_use is None else self.in_use.used.get(run.id)
        return int(self.table.memory[run.job]) if measured is None else measured

    @property
    def stalled(self) -> Mapping[int, int]:
        """Run -> time (ns) since which it has made no progress for lack of memory, in the order of these times."""
        return {} if self.in_use is None else self.in_use.stalled

    def composition(self, device: int) -> tuple[int, ...]:
        """Return the devices composed with `device`: those of the run that uses it, or `device` alone if it is free."""
        for number in self.occupants(device):
            owners = self.run(number).placement.owners()
            if device in owners:
                return tuple(o for o in owners if self.machine.kind[o] == self.machine.kind[device])
        return (device,)

    @property
    def _imagines(self) -> bool:
        """True if the runs differ from those of the platform."""
        return bool(self._extra or self._stopped) or self._ended is not None

    def _gone(self, run: Run) -> bool:
        if self._ended is None or run.id in self._stopped:
            return run.id in self._stopped
        end = run.expected_end if run.expected_end > self._real else self._real + OVERDUE
        return end <= self._ended

    def _touched(self, run: Run) -> set[int]:
        fetching = () if run.fetch is None else run.fetch.touches
        return {*run.placement.owners(), *fetching, *self.estimate.touches(run.placement, self)}

    # Look-ahead for backfilling

    def empty(self) -> Snapshot:
        """Return the state with nothing running."""
        return Snapshot(
            self.now,
            self.machine,
            self.table,
            self.capacity,
            self.capacity,
            RunTable(self.capacity.size),
            self.estimate,
            work=self._work,
            may_grow=self.may_grow,
            freed_at=self.freed_at,
            history=self.history,
        )

    def expected_end(self, job: int, placement: Placement) -> int:
        """Return the time (ns) at which a job that starts now is expected to end, at most `HORIZON`.

        The end is now + setup + fetching * (1 + slowdown of fetching) + work * (1 + slowdown), with expected slowdowns.
        """
        view, run = self, self._starting(job, (0,), placement, self.now)  # its end is not known yet
        if run.fetch is not None or self.estimate.touches(placement, self):
            view = self._with(run)
        lasts = self.estimate.setup(run, view) + with_slowdown(float(self.work[job]), self.estimate.slowdown(run, view))
        if run.fetch is not None:
            lasts += with_slowdown(run.fetch.work, self.estimate.fetch_slowdown(run, view))
        return min(self.now + lasts, HORIZON)

    def with_started(
        self, job: int, placement: Placement, tasks: tuple[int, ...] = (0,), *, end: int | None = None
    ) -> Snapshot:
        """Return the state in which a job has started now. Free amounts may become negative: the caller must check.

        `end` is its expected end, by default `expected_end(job, placement)`.
        """
        if end is None:
            end = self.expected_end(job, placement)
        return self._with(self._starting(job, tasks, placement, end))

    def with_starts(self, starts: Iterable[Start]) -> Snapshot:
        """Return the state after the given starts, one after the other."""
        view = self
        for start in starts:
            view = view.with_started(start.job, start.placement, start.tasks)
        return view

    def _starting(self, job: int, tasks: tuple[int, ...], placement: Placement, end: int) -> Run:
        """Return a run that starts now and is expected to end at `end`."""
        run = Run(-1 - len(self._extra), job, tasks, placement, self.now, end)
        fetch = self.estimate.fetch(run, self)
        return run if fetch is None else replace(run, fetch=fetch)

    def _with(self, run: Run) -> Snapshot:
        """Return the state with one more run."""
        free = self.free.copy()
        run.placement.take_from(free)
        other = self._copy(self.now, free)
        other._extra = (*self._extra, run)
        return other

    def without(self, runs: Iterable[int]) -> Snapshot:
        """Return the state in which some running runs have stopped now; imagined runs cannot be stopped."""
        stopped, free = frozenset(runs), self.free.copy()
        for number in stopped:
            self._runs[number].placement.give_to(free)
        other = self._copy(self.now, free)
        other._stopped |= stopped
        return other

    def imagined(self, time: int, free: IntArray) -> Snapshot:
        """Return this state at another time with other free amounts, (n_owner, n_resource), but the same runs."""
        return self._copy(time, free)

    def at(self, time: int) -> Snapshot:
        """Return the state at `time` after the expected releases until then; overdue runs are expected to end at now + 1 s."""
        if time < self.now:
            raise ValueError(f"the snapshot is at {self.now} ns; time must not be earlier, got {time}")
        free = self.free.copy()
        ends, slots = self._ending()
        due = slots[ends <= time]
        if len(due):
            self._runs.add_released(due, free.reshape(-1))
        stay = []
        for run in self._extra:
            if run.expected_end <= time:
                run.placement.give_to(free)
            else:
                stay.append(run)
        other = self._copy(time, free)
        other._extra = tuple(replace(run, id=-1 - k) for k, run in enumerate(stay))
        other._ended = time
        return other

    def futures(self, block: int = 256) -> Iterator[tuple[IntArray, IntArray]]:
        """Iterate over the states after each expected release, and after the ends of the machine's windows, in order of time.

        Parameters
        ----------
        block
            Number of releases that are computed at a time.

        Yields
        ------
        ends : (k,) distinct expected ends, and ends of windows, ascending
        free : (k, n_owner, n_resource) free amounts from each of these times on, if nothing else starts
        """
        ends, slots = self._ending()
        return free_after_releases(self._runs, ends, slots, self._extra, self._window_ends(), self.free, block)

    def ends(self) -> IntArray:
        """Return the distinct expected ends, and ends of windows, that `futures` yields, (k,), ascending."""
        expected, _ = self._ending()
        imagined = [run.expected_end for run in self._extra]
        return np.unique(np.concatenate([expected, np.array([*imagined, *self._window_ends()], dtype=np.int64)]))

    def _window_ends(self) -> list[int]:
        """Return the ends (ns) of the machine's windows that are not over."""
        return [window.end for window in self.machine.windows if window.end > self.now]

    def _ending(self) -> tuple[IntArray, IntArray]:
        """Return the expected ends of the platform's runs in this state, ascending, and the slots of these runs, each (k,)."""
        ends, slots = self._expected(self._runs.ends), self._runs.slots
        if self._stopped:
            keep = ~np.isin(slots, self._runs.slots_of(self._stopped))
            ends, slots = ends[keep], slots[keep]
        if self._ended is not None:
            keep = ends > self._ended
            ends, slots = ends[keep], slots[keep]
        return ends, slots

    def _expected(self, ends: IntArray) -> IntArray:
        """Return the ends, with those of overdue runs moved to now + 1 s."""
        if len(ends) and int(ends[0]) <= self._real:
            return np.where(ends <= self._real, self._real + OVERDUE, ends)
        return ends


def _read_only(array: IntArray) -> IntArray:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.setflags(write=False)
    return view
