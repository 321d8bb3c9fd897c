"""Arrays shared by the kernels, grouped by subject. Their names and shapes are the interface of this package."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from poolwise.arrays import BoolArray, FloatArray, IntArray

# Order.kind
STATIC, LINEAR, CUBIC, CALLBACK, AFFINE = range(5)
# Rules.backfill
NONE, EASY, EASY_NO_EXTRA, CONSERVATIVE = range(4)
# Rules.spread, Rules.believed_spread
WORST, MEAN, PAPER = range(3)
# Return values of `replay`
DONE, COMPUTE_KEYS, ROOM, INSTANTS, DEEP, SHALLOW, LATE, PAUSED, RENEW_KEYS = range(9)


class JobArrays(NamedTuple):
    """Jobs, (n_job,) each, in the order (submit, id), which is also the tie rule.

    Attributes
    ----------
    submit : ns
    nodes : whole nodes of all tasks
    remote : MiB of remote memory per node
    able : whether the job fits the empty machine; the others are rejected
    work, expected_work : ns of work: true, and as the scheduler expects it
    runtime : ns, true runtime with all memory near
    length : ns, a lower bound of the expected runtime; the expected runtime itself in scope "rack"
    near, far, weight : see `model.rules.FixedSlowdown`; these and the next are (0,) in scope "rack", where all memory is near
    believed_near, believed_far, believed_weight : the same as the scheduler expects it
    awaited : whether the replay may stop once this job and all other awaited jobs have started; (0,) if there are none
    """

    submit: IntArray
    nodes: IntArray
    remote: IntArray
    able: BoolArray
    work: IntArray
    expected_work: IntArray
    runtime: IntArray
    length: IntArray
    near: FloatArray
    far: FloatArray
    weight: FloatArray
    believed_near: FloatArray
    believed_far: FloatArray
    believed_weight: FloatArray
    awaited: BoolArray


class Demands(Protocol):
    """Columns that a tree over the waiting jobs reads, (n_job,) each: two demands and a lower bound of the runtime."""

    @property
    def nodes(self) -> IntArray:
        """The first demand."""
        ...

    @property
    def remote(self) -> IntArray:
        """The second demand."""
        ...

    @property
    def length(self) -> IntArray:
        """Expected runtime (ns), or a lower bound of it."""
        ...


class Order(NamedTuple):
    """Order of the queue: how a job's key (its negative priority) follows from its wait w in seconds.

    Attributes
    ----------
    kind : STATIC or CALLBACK (the keys are given), LINEAR (x * weight, x = w / pace), CUBIC (x * x * x * weight) or AFFINE
        (offset + w * weight)
    key : (n_job,) negative priority, smaller first, ties by row; for kinds that depend on time, written only for held
        reservations
    submit : (n_job,) ns
    pace, weight, offset : (n_job,), or (0,) where the kind has none
    rate : (n_job,) or (0,); w * rate grows as the priority does, up to rounding, which the tree compares; of an AFFINE order,
        the priority gained per ns
    """

    kind: int
    key: FloatArray
    submit: IntArray
    pace: FloatArray
    weight: FloatArray
    rate: FloatArray
    offset: FloatArray


class Rules(NamedTuple):
    """Rules of a replay.

    Attributes
    ----------
    anywhere : whether a node may use any pool (scope "system")
    backfill : NONE, EASY, EASY_NO_EXTRA or CONSERVATIVE
    spread, believed_spread : WORST, MEAN or PAPER
    nodes_only : whether the head's reservation assumes `RackArrays.unlimited_pool` for the pools
    warm_up : the first jobs run first come, first served without backfilling until the last of them has started
    per_event : one pass for each event instead of one for each instant
    separate_order : whether backfill candidates have their own order
    capped : whether jobs that have waited for longer than a cap come first, in submit order
    patience : ns of the cap, without the backlog
    backlogs : multiples of the backlog's age that are added to the cap
    nodes : nodes of the machine
    """

    anywhere: bool
    backfill: int
    spread: int
    believed_spread: int
    nodes_only: bool
    warm_up: int
    per_event: bool
    separate_order: bool
    capped: bool
    patience: int
    backlogs: float
    nodes: int


class RackArrays(NamedTuple):
    """Racks, (n_rack,) each unless another shape is given.

    Attributes
    ----------
    free, pool : free nodes, free MiB of the pool
    shadow_free, shadow_pool : the same at the head's shadow time, if runs end as expected
    offered, required : nodes that the head could use then, and cannot spare (scope "rack"; see `reservation.compute_extra`)
    rank : racks by free nodes, most first, ties by index: the order in which a rack for an entire job is searched
    whole : (n_rack, 4) limits of a job that fits entirely in one rack, one row per rack of `rank`; columns named below
    unlimited_pool : MiB assumed for a pool that is taken to be unlimited, 0 if the rack has no pool
    take, borrow : nodes and MiB of the placement found last
    node_owner, pool_owner : owner of the nodes, of the pool
    of_owner : (n_owner,) rack of each owner
    node_column, memory_column : resource of nodes, of memory
    """

    free: IntArray
    pool: IntArray
    shadow_free: IntArray
    shadow_pool: IntArray
    offered: IntArray
    required: IntArray
    rank: IntArray
    whole: IntArray
    unlimited_pool: IntArray
    take: IntArray
    borrow: IntArray
    node_owner: IntArray
    pool_owner: IntArray
    of_owner: IntArray
    node_column: int
    memory_column: int


# Columns of RackArrays.whole: most nodes and MiB of a job that ends by the head's shadow time; of one that ends after it
NODES_NOW, MEMORY_NOW, LONG_NODES, LONG_MEMORY = range(4)
# Results of `closed_form.classify`: a job may start; an exact test has to decide; it may not start
STARTABLE, UNDECIDED, BLOCKED = range(3)


class ChangeArrays(NamedTuple):
    """Changes of the racks' capacity, and jobs deferred or lost because of them.

    Attributes
    ----------
    time, rack, amount : (n_change,) ns, ascending; the rack, and nodes or MiB that it gains or loses
    of_pool : (n_change,) whether its pool changes, not its nodes
    nodes, memory : (n_rack,) current capacity of racks and pools, used or not
    max_request : (2,) the most nodes, and the most remote memory per node, that any job requests which may ever run
    requeues : (1,) whether jobs that lose their nodes or memory are requeued
    deferred : (n_job,) jobs that would not fit the machine even if it were empty; the first `now[DEFERRED]` count
    rejected_after : (n_job,) changes applied before each job in `RunArrays.rejected` was rejected
    lost : (n_run,) whether a run was aborted; grown by the caller on ROOM, with the columns of runs
    """

    time: IntArray
    rack: IntArray
    amount: IntArray
    of_pool: BoolArray
    nodes: IntArray
    memory: IntArray
    max_request: IntArray
    requeues: BoolArray
    deferred: IntArray
    rejected_after: IntArray
    lost: BoolArray


class QueueArrays(NamedTuple):
    """The waiting jobs, unordered.

    Attributes
    ----------
    job : (n_job,), the first `now[WAITING]` count
    nodes, remote, length : (n_job,) the columns of `JobArrays` for each job in `job`, contiguous for scans
    since : (n_job,) number of the pass in which each job in `job` joined
    where : (n_job,) position of each job in `job`, -1 if it does not wait
    chosen : (n_job,) scratch of a pass
    warm : (n_job,) waiting warm-up jobs, first come, first served; from `now[WARM_FIRST]` to `now[WARM_LAST]`
    area : (n_job,) node-seconds that each job, waiting or not, adds to the backlog; (0,) without a cap
    """

    job: IntArray
    nodes: IntArray
    remote: IntArray
    length: IntArray
    since: IntArray
    where: IntArray
    chosen: IntArray
    warm: IntArray
    area: IntArray


class Tree(NamedTuple):
    """The waiting jobs of a deep queue as the leaves of a binary tree; see `tournament`.

    Attributes
    ----------
    path : (n_job,) distinct numbers below 2 ** n_bit; jobs with similar demands have neighboring paths
    at : (n_job,) node of each waiting job's leaf
    node : (2 * n_job, 8) summary of the jobs at and below a node; columns named below. The root is node 1; nodes
        2 * k and 2 * k + 1 are the children of fork k
    bit : (n_job,) bit of the paths that selects the child of a fork
    above : (n_job,) node of each fork, 0 for the root's; of an unused fork, the next unused one
    forks : (2,) the first unused fork, 0 for none; the largest fork ever used
    stack : (n_bit + 2,) scratch of a search
    """

    path: IntArray
    at: IntArray
    node: IntArray
    bit: IntArray
    above: IntArray
    forks: IntArray
    stack: IntArray


UNUSED, USED = range(2)  # Tree.forks


# Columns of Tree.node, one cache line: the fork at which the paths of its jobs part; the first job by priority, and the ns
# until which it certainly stays first; the minimum nodes, remote memory per node and `JobArrays.length`; the maximum nodes and
# remote memory
FORK, WINNER, UNTIL, NODES, REMOTE, LENGTH, MOST_NODES, MOST_REMOTE = range(8)
# Values of column FORK without a fork: no job, or a single one
EMPTY, LEAF = 0, -1


class ReservationCacheArrays(NamedTuple):
    """Reservations made by the last passes, and changes since that may affect each of them; see `reservation_cache`.

    Attributes
    ----------
    ranked : (n_job,) waiting jobs in priority order, the first `now[RANKED]` count
    place : (n_job,) position of each of them
    key : (n_job,) their keys
    start, end : (n_job,) ns, the earliest interval that was free for a job when it was last computed; start -1 if unknown
    take, borrow : (n_job, n_rack) nodes and MiB of its placement there
    margin : (n_job,) lead in nodes of the rack that holds the entire placement over the next one, -1 with several racks
    counted : (n_job,) whether the profile counts the reservation
    gain_from, gain_until : (n_job,) ns, the interval within which more may have become free for the job; until 0 for none
    loss_from, loss_until : (n_job,) the same for less
    loss_on : (n_job,) bits of the racks on which less may be free
    """

    ranked: IntArray
    place: IntArray
    key: FloatArray
    start: IntArray
    end: IntArray
    take: IntArray
    borrow: IntArray
    margin: IntArray
    counted: BoolArray
    gain_from: IntArray
    gain_until: IntArray
    loss_from: IntArray
    loss_until: IntArray
    loss_on: IntArray


class StepArrays(NamedTuple):
    """The minimum that is free from now until any time, a step function; see `candidate_filter`.

    Attributes
    ----------
    time : (n_instant,) ns ascending, at which it decreases; the first is now
    nodes, memory : (n_instant,) sums over the racks of their minima
    free, pool : (n_instant, n_rack)
    """

    time: IntArray
    nodes: IntArray
    memory: IntArray
    free: IntArray
    pool: IntArray


class ProfileArrays(NamedTuple):
    """Availability profile of conservative backfilling: free capacity from each of a sequence of instants.

    Attributes
    ----------
    time : (n_instant,) ns ascending; grown by the caller on INSTANTS
    nodes, memory : (n_instant,) free nodes of all racks, free MiB of all pools
    free, pool : (n_rack, n_instant)
    begins : (n_instant,) reservations that begin at an instant; at instants without one, no rack has less than before
    size : (7,) by the columns named below
    least_free, least_pool : (n_rack,) the minimum over an interval
    low : (n_instant,) scratch of a search: instants of an interval, except its first, at which reservations begin
    recent_free, recent_pool : (n_rack,) scratch of a search: the minimum over the later part of them
    tail_free, tail_pool : (n_instant, n_rack) scratch of a search: the minimum from each of them to the end of the earlier part
    steps : scratch of a pass
    cache : the reservations of the last passes; for (0,) jobs where reservations are held in `ReservationArrays`
    """

    time: IntArray
    nodes: IntArray
    memory: IntArray
    free: IntArray
    pool: IntArray
    begins: IntArray
    size: IntArray
    least_free: IntArray
    least_pool: IntArray
    low: IntArray
    recent_free: IntArray
    recent_pool: IntArray
    tail_free: IntArray
    tail_pool: IntArray
    steps: StepArrays
    cache: ReservationCacheArrays


# Columns of ProfileArrays.size: instants in use; the instant that is now, those before it are past; the length (ns) of the
# interval found last; instants in use when those without changes were last dropped; steps in use, the time (ns) before which
# all steps are known, and the rack that holds the entire candidate found last, -1 if none does
INSTANT_COUNT, PRESENT, LENGTH_FOUND, MERGED, STEP_COUNT, STEPS_UNTIL, SINGLE_RACK = range(7)


class ReservationArrays(NamedTuple):
    """Reservations held from pass to pass.

    Attributes
    ----------
    start, end : (n_job,) ns; -1 if a job has no reservation
    take, borrow : (n_job, n_rack) nodes and MiB of the placement
    ranked : (n_job,) scratch of a pass: waiting jobs in priority order
    begin : (n_job,) scratch: starts of the ranked jobs' reservations
    """

    start: IntArray
    end: IntArray
    take: IntArray
    borrow: IntArray
    ranked: IntArray
    begin: IntArray


class RunArrays(NamedTuple):
    """Runs in the order of their starts: the record, and those still running.

    Attributes
    ----------
    job, start, end, expected : (n_job,) row of the job, ns
    offset : (n_job + 1,) rows offset[k]:offset[k+1] are run k's placement
    owner, resource, amount : (n_row,) nodes before memory; grown by the caller on ROOM
    ending : (n_job,) heap of the current runs by (end, run), the first `now[RUNNING]` count
    due : (n_job,) current runs by expected end, latest first
    rejected : (n_job,) rejected jobs, in the order of rejection
    early : (n_job,) runs that ended before their expected end, the first `now[EARLY]` count; see `PROFILE_VALID`
    """

    job: IntArray
    start: IntArray
    end: IntArray
    expected: IntArray
    offset: IntArray
    owner: IntArray
    resource: IntArray
    amount: IntArray
    ending: IntArray
    due: IntArray
    rejected: IntArray
    early: IntArray


# Rows of `now`, the (N_NOW,) int64 scalars of a replay that change
(
    TIME,
    NEXT,  # row of the next arrival
    WAITING,
    RUNNING,
    STARTED,  # runs so far
    REJECTED,
    PASSES,
    PHASE,
    QUIET,  # 1 if the events were only arrivals of rejected jobs
    WARM_FIRST,
    WARM_LAST,
    WARM,  # 1 while the warm-up lasts
    HEAD,  # job of the cached reservation, -1 for none
    SHADOW,  # ns; NEVER before the first head has one
    SHADOW_TRACKED,  # 1 while `RackArrays.shadow_free` and `.shadow_pool` are updated from head to head
    WINDOW,  # longest expected runtime that ends by SHADOW
    EXTRA_NODES,  # extra capacity beyond the head's reservation: see `reservation.compute_extra`
    EXTRA_MEMORY,
    EXTRA_PER_NODE,
    SURPLUS,
    POOL_PER_NODE,  # bounds of the racks now: see `closed_form.prepare_bounds`
    FREE,
    LONG_SPLIT,
    FIRST,  # first waiting job by priority until FIRST_UNTIL, -1 if unknown; not with a tree
    FIRST_UNTIL,
    ROWS,  # rows requested on ROOM and INSTANTS
    SETTLED,  # 1 if the last pass started nothing and no run has ended since: only jobs that arrive now may start
    INDEXED,  # 1 while the tree holds the queue
    DEPTH,  # number of waiting jobs above which a tree holds the queue
    PAUSE,  # passes after which the kernel returns PAUSED, for progress reports
    RENEWAL,  # ns from which the stored keys are outdated: the next recalculation
    AWAITED,  # awaited jobs that have not started; the replay stops at 0
    STOP,  # ns after which no event is replayed
    CHANGES,  # changes of capacity so far
    LAST_GAIN,  # changes up to and including the last that adds capacity
    DEFERRED,
    RECHECKED,  # deferred jobs that did not fit when last rechecked
    FRONT,  # ns; jobs submitted by then come first, in submit order
    RANKED,  # jobs in `ReservationCacheArrays.ranked`
    PROFILE_VALID,  # 1 if the profile is that of the last pass, except for the time, new arrivals and the runs in `early`
    EARLY,
    BACKLOG,  # sum of `QueueArrays.area` over the waiting jobs, if there is a cap
    OLDEST,  # row before which no job waits, if there is a cap
    N_NOW,
) = range(44)

APPLY_EVENTS, MAKE_PASS, KEYED_PASS = range(3)
"""Values of now[PHASE]: the place at which `replay` resumes."""
