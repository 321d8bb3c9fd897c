"""Every interface of Poolwise, on one page. Read this first.

A platform yields events and commits plans; a scheduler's dispatcher turns the queue and a snapshot into a plan; a list
scheduler is put together from a queue order, a backfill and a placement policy; a performance model says how long a job
takes where it is placed. All of them are small frozen configurations: `__init__` only stores, so that they can be
compared, pickled, swept and named in a study file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeVar, final

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.model import (
    Changes,
    CommitResult,
    EventBatch,
    Fetch,
    Job,
    JobTable,
    Machine,
    Placement,
    Plan,
    Queue,
    Reason,
    Refusal,
    Rule,
    Run,
    Snapshot,
    Start,
)
from poolwise.model.rules import BackfillRule as BackfillRule
from poolwise.model.rules import FixedSlowdown, RackRule
from poolwise.model.snapshot import Estimate

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
OrderKind = Literal["static", "linear", "cubic", "recalculated", "opaque"]
EXTREME = 1e60
"""Largest size of the paces and weights of an `AgingOrder`, and its inverse the least: nothing worked out overflows."""


class Scheduler(Protocol):
    """A scheduling algorithm and its settings; holds no state of a run."""

    @property
    def knows_restrictions(self) -> bool:
        """Whether it keeps what a machine says about partitions, features, QOS and windows (`Machine.restricted`)."""
        return False

    @property
    def remembers(self) -> str:
        """What a dispatcher keeps that no queue and snapshot show, such as reservations that are promises.

        Empty means nothing: a dispatcher may then be thrown away and opened anew at any pass without changing a decision.
        """
        return ""

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run on a machine; raises InputError for one that the algorithm cannot work on.

        No job is known yet. Where owners join or leave, the machine is another one, and a dispatcher is opened anew.
        """
        ...

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for what a study can know beforehand, such as jobs that ask for what the machine does not have."""
        return

    def rule(self) -> ListRule | None:
        """Say which list scheduling this is, so that fast engines can do it; None if it is something else (`rule_of`)."""
        return None


class ListRule(NamedTuple):
    """What a fast engine has to know of a scheduler that is list scheduling.

    Attributes
    ----------
    order, backfill, placement : what it is put together from
    warm_up : so many first jobs run first come, first served without backfilling, until the last of them has started
    """

    order: QueuePolicy
    backfill: BackfillPolicy
    placement: PlacementPolicy
    warm_up: int = 0


class _Ruled(Protocol[T_co]):
    """A policy that may describe what it does as a rule."""

    def rule(self) -> T_co | None: ...


def rule_of(policy: _Ruled[T]) -> T | None:
    """Rule of a policy; None where its own class states none, whatever its base classes state: it may do something else."""
    return policy.rule() if "rule" in vars(type(policy)) else None


class Dispatcher(Protocol):
    """One run of a scheduler.

    It may hold only caches that can be rebuilt from the queue and a snapshot (`Scheduler.remembers` declares exceptions):
    one that has run for a week and one freshly opened decide alike, whatever `changes` either is given.
    """

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Decide what to do now. Neither the queue nor the snapshot is changed.

        A job that can never run is rejected; a plan that does nothing but reject is followed by another pass, unless
        nothing else has happened than the arrival of what it rejects. While the machine may still grow
        (`Snapshot.may_grow`), such a job waits, and holds up nobody.
        """
        ...

    def why(self, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
        """Say what held back a job that waits, as facts: what was short, who stood in the way, until when.

        `plan` is what this scheduler decided of this queue and snapshot, and does not start all of the job's tasks. A resource
        that is named, added to the machine in the amount that was short, starts the job, or what is short next is named. By
        default the plan's own `Wait` is quoted. Ask by `reason_of`: a `why` speaks for the `schedule` that it stands beside.
        """
        said = plan.waits.get(job)
        if said is not None:
            return Reason.of(Rule.SHORT if said.resource else Rule.UNSAID, said.reason, said)
        return Reason(Rule.UNSAID, f"{type(self).__name__.removesuffix('Dispatcher')} gives no reason")


def reason_of(dispatcher: Dispatcher, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
    """Ask a dispatcher why a job waits (`Dispatcher.why`).

    A class that decides in another way than the one which its `why` is from gives no reason but its `Wait`.
    """
    ask = type(dispatcher).why if _speaks_for(type(dispatcher), "schedule") else Dispatcher.why
    return ask(dispatcher, job, queue, snapshot, plan)


def _speaks_for(kind: type, decides: str) -> bool:
    """Whether the `why` of a class stands in the class of the method that decides, or in one derived from it."""
    deciding, saying = (next(c for c in kind.__mro__ if name in vars(c)) for name in (decides, "why"))
    return issubclass(saying, deciding)


class QueuePolicy(Protocol):
    """The order in which waiting jobs are considered. Ties: earlier submit, then lower id.

    `kind` is a promise that lets engines skip work: "static" (a job's priority never changes, and follows from the job table
    and the machine alone), "linear" or "cubic" (it follows from the time waited: see `AgingOrder`), "recalculated" (it changes
    at intervals: see `RecalculatedOrder`), or "opaque" (anything; asked again for the whole queue at each pass).
    """

    kind: ClassVar[OrderKind]

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) float64, higher first; row k is `queue.jobs[k]`. NaN is an error."""
        ...


class RecalculatedOrder(QueuePolicy):
    """A queue order whose priorities change only when they are recalculated, at equal intervals.

    Fast engines ask for them at recalculations alone.
    """

    kind: ClassVar[OrderKind] = "recalculated"

    def last(self, now: int) -> int:
        """Ns of the last recalculation up to a time."""
        raise NotImplementedError

    def following(self, recalculated: int) -> int:
        """Ns of the recalculation after another."""
        raise NotImplementedError

    def at(self, recalculated: int, jobs: IntArray, snapshot: Snapshot) -> FloatArray:
        """(k,) priorities of jobs, (k,) rows, from a recalculation until the next; the snapshot is of a time in between.

        What ended or started after the recalculation must not change them. A job that comes after it may be asked about.
        """
        raise NotImplementedError

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) priorities."""
        return self.at(self.last(snapshot.now), queue.jobs, snapshot)


class PreparedOrder(QueuePolicy):
    """A queue order that reads files, or keeps caches from pass to pass: it is opened for each run."""

    def open(self) -> QueuePolicy:
        """Begin a run; returns what holds the files' content and the caches."""
        return self

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError, and warn, for what a study can know of its jobs beforehand."""
        return


def opened(order: QueuePolicy) -> QueuePolicy:
    """Begin a run of an order."""
    return order.open() if isinstance(order, PreparedOrder) else order


class AgingOrder(QueuePolicy):
    """A queue order whose priorities follow from the time waited and two numbers of each job, its pace and its weight.

    With w the seconds waited and x = w / pace, the priority is x * weight where `kind` is "linear", and x * x * x * weight
    where it is "cubic", multiplied from the left. So weight / pace is the slope of a linear order; it may have any sign.
    Subclasses give the two columns, which fast engines read; the priorities that follow from them stand here once.
    """

    kind: ClassVar[OrderKind] = "linear"

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) seconds, for rows (k,) of the job table; not 0. A job's pace never changes, whoever else is asked for."""
        return np.ones(len(jobs))

    def weight(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) numbers, for rows (k,) of the job table. A job's weight never changes, whoever else is asked for."""
        return np.ones(len(jobs))

    @final
    def aging(self, jobs: IntArray, table: JobTable, machine: Machine) -> tuple[FloatArray, FloatArray]:
        """Pace and weight, (k,) each; raises PolicyError for NaN, and for numbers too large or too small to compute with."""
        pace, weight = self.pace(jobs, table, machine), self.weight(jobs, table, machine)
        for name, column, zero in (("paces", pace, False), ("weights", weight, True)):
            if column.shape != jobs.shape or not _moderate(column, zero):
                raise PolicyError(
                    f"{type(self).__name__} must give {len(jobs)} {name} between {1 / EXTREME:g} and {EXTREME:g} in size"
                    f"{', or 0' if zero else ''}, got {column!r}",
                    by=self,
                )
        return pace, weight

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) priorities."""
        pace, weight = self.aging(queue.jobs, queue.table, snapshot.machine)
        x = queue.waited_s(snapshot.now) / pace
        return x * weight if self.kind == "linear" else x * x * x * weight


def _moderate(column: FloatArray, zero: bool) -> bool:
    """Whether (k,) numbers are neither too large nor too small, 0 being allowed where `zero` says so; False for NaN."""
    size = np.abs(column)
    if not len(size):
        return True
    least, most = np.minimum.reduce(size), np.maximum.reduce(size)  # NaN if one is
    if zero and least == 0:
        return bool(most <= EXTREME) and bool((size[size != 0] >= 1 / EXTREME).all())
    return bool(least >= 1 / EXTREME) and bool(most <= EXTREME)


class AdmissionPolicy(Protocol):
    """Which waiting jobs may be considered at all, whatever is free: limits of the machine, or rules of your own.

    What is not admitted now is passed over and holds up nobody. As more runs start, no job that was not admitted becomes so.
    """

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for what a study can know of its jobs beforehand."""
        return

    def never(self, job: int, snapshot: Snapshot) -> Refusal | None:
        """Say why a job (row) may never run, whatever else does; None if it may. The answer never changes."""
        return None

    def admits(self, queue: Queue, snapshot: Snapshot) -> BoolArray | None:
        """(n_queued,) which of the waiting jobs may be considered beside the runs of the snapshot; None for all."""
        ...

    def why(self, job: int, queue: Queue, snapshot: Snapshot) -> Refusal:
        """Say what held back a job that was not admitted."""
        return Refusal(f"{type(self).__name__} does not admit it")


class PlacementPolicy(Protocol):
    """Where a job runs."""

    knows_eligibility: ClassVar[bool] = False
    """Whether it takes nothing but nodes on which a job may run (`model.eligibility`)."""

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for settings, and for what a study can know beforehand, such as requests that nothing can meet."""
        return

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        """Find a placement for all tasks of a job in what is free, or say which resource is short.

        No job makes it raise: one that asks for what the machine does not have is refused.
        """
        ...

    def screen(self, jobs: IntArray, free: IntArray, snapshot: Snapshot) -> BoolArray:
        """Filter out what `place` would surely refuse; exactness is not needed, a false False is an error.

        Parameters
        ----------
        jobs
            (k,) rows of the job table, or (1,) to try one job in many states.
        free
            (1 or k, n_owner, n_resource) amounts free; broadcasts against `jobs`.

        Returns
        -------
        (k,) bool. The default accepts everything.
        """
        return np.ones(np.broadcast_shapes((len(jobs),), (len(free),)), dtype=np.bool_)

    def rule(self) -> RackRule | None:
        """Describe what `place` does, so that fast engines can do it (`rule_of`); None if no such rule describes it."""
        return None


class BackfillPolicy(Protocol):
    """Which waiting jobs start now, given their priorities."""

    sees_every_pass: ClassVar[bool] = False
    """Whether it must be asked even in passes in which nothing that waits fits what is free."""

    @property
    def remembers(self) -> str:
        """What it keeps from pass to pass that no queue and snapshot show; empty for nothing."""
        return ""

    def open(self) -> BackfillPolicy:
        """Begin a run. A policy that remembers anything from pass to pass returns what remembers it; others themselves."""
        return self

    def wake_at(self, now: int) -> int | None:
        """When (ns) to be asked again if nothing else happens, while a job waits that fits; None: at the next event."""
        return None

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Choose starts from the waiting tasks of (n_queued,) jobs, given their (n_queued,) priorities."""
        ...

    def why(
        self,
        job: int,
        queue: Queue,
        priority: FloatArray,
        snapshot: Snapshot,
        placement: PlacementPolicy,
        starts: Sequence[Start],
    ) -> Reason:
        """Say what held back a job that waits, given the `starts` that `select` chose from the rest; see `Dispatcher.why`.

        It need not say how many jobs went before it. The default says what the job lacks beside all starts. Ask by
        `backfill_reason`: a `why` speaks for the `select` that it stands beside.

        Raises PolicyError if by the policy's own rule the job should have started.
        """
        found = placement.place(queue.job(job), snapshot.with_starts(starts))
        if isinstance(found, Refusal):
            return Reason.of(Rule.SHORT, found.reason, found)
        return Reason(Rule.UNSAID, f"it fits, and {type(self).__name__} gives no reason")

    def rule(self) -> BackfillRule | None:
        """Describe what `select` does, so that fast engines can do it (`rule_of`); None if no such rule describes it."""
        return None


def backfill_reason(
    backfill: BackfillPolicy,
    job: int,
    queue: Queue,
    priority: FloatArray,
    snapshot: Snapshot,
    placement: PlacementPolicy,
    starts: Sequence[Start],
) -> Reason:
    """Ask a backfill why a job waits (`BackfillPolicy.why`); one whose `select` is not that of its `why` gives no reason."""
    ask = type(backfill).why if _speaks_for(type(backfill), "select") else BackfillPolicy.why
    return ask(backfill, job, queue, priority, snapshot, placement, starts)


class PerformanceModel(Estimate, Protocol):
    """How long a run takes where it is placed. A study has two: the scheduler's estimate and the simulator's truth.

    What a run's work is, a model reads from `view.work`: true durations where it is asked as the truth, requested times
    where it is asked as the estimate.

    The quantity is the slowdown, not the rate: runtime = work + ceil(work * slowdown) is exact to the nanosecond where a
    reciprocal would not be. The rate is 1 / (1 + slowdown); models that are combined multiply their rates and add their
    setups (`performance.combined.Combined`).

    A run lasts for its setup, then for what it fetches, if anything, then for its work. The setup is fixed at the start;
    the pace of the other two follows the surroundings.
    """

    @property
    def parts(self) -> tuple[Estimate, ...]:
        """Models that it is put together from: their rates multiply, their setups add. None: every run takes just its work.

        It speaks for its own class alone (`model_parts`).
        """
        return (self,)

    def setup(self, run: Run, view: Snapshot) -> int:
        """Ns before work begins that no neighbour changes: transfers over links of one's own, attaching."""
        ...

    def fetch(self, run: Run, view: Snapshot) -> Fetch | None:
        """Data that a run which starts now has to bring in over shared links before its work begins; None for none."""
        return None

    def fetch_slowdown(self, run: Run, view: Snapshot) -> float:
        """Extra time per unit of fetching at the present occupancy of `view`, in which the run fetches; > -1."""
        return 0.0

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """Extra time per unit of reference work at the present occupancy of `view`, in which the run is included; > -1.

        A run that still fetches is asked about as well: the answer estimates the pace of its work once it begins.
        """
        ...

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """Owners whose occupancy changes the slowdown; empty = fixed at the start."""
        ...

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError, and warn, for what a study can know of its jobs beforehand."""
        return

    def fixed(self, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown | None:
        """Slowdowns of some rows of the job table on racks, where nothing else takes time and no neighbour changes them.

        None, the default, if that does not describe the model. It speaks for its own class alone (`fixed_slowdown`).
        """
        return None


def fixed_slowdown(model: PerformanceModel, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown | None:
    """Slowdowns that a model states (`PerformanceModel.fixed`); None where its own class states none.

    Raises PolicyError for a slowdown of -1 or less, or one that is no number: with it, no run could progress.
    """
    found = model.fixed(table, rows, machine) if "fixed" in vars(type(model)) else None
    if found is not None and not all(bool(((x > -1) & (x * found.weight > -1) & np.isfinite(x)).all()) for x in found[:2]):
        raise PolicyError(f"{type(model).__name__}.fixed must give finite slowdowns above -1")
    return found


class Platform(Protocol):
    """A machine that runs jobs: simulated, or a cluster that is there.

    Attributes
    ----------
    table : the jobs that have arrived; a table of another edition takes its place when rows are numbered anew
    """

    table: JobTable

    def events(self) -> Iterator[EventBatch]:
        """Yield what happened, instant by instant; the next batch is asked for when the plan for this one is committed.

        An event that is repeated changes nothing. A platform that is taken over from another process first tells
        the arrival of all that waits; what is at work stands in the snapshot.
        """
        ...

    def snapshot(self) -> Snapshot:
        """Show the state now; what was committed is held, whether or not it has become real."""
        ...

    def commit(self, plan: Plan) -> CommitResult:
        """Carry out a plan, decision by decision; a start that does not fit is refused whole.

        A committed start has its run number at once. It may take time to become real: then follows `Started`, or an end
        with the outcome REFUSED that undoes all of it, and no task of it starts again while another is still bound.
        """
        ...
