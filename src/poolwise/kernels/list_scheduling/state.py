"""Arrays shared by the kernels, grouped by subject. Their names and shapes are the interface of this package."""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.kernels.common.state import Now, Order, QueueArrays, RunArrays


class MixedArrays(NamedTuple):
    """Nodes that differ, or on which only some jobs may run; (n_group,) each unless another shape is given: `mixed_racks`."""

    local: IntArray  # MiB of local memory of a node
    others: IntArray  # further resources of a node, where the order of groups counts them
    rack: IntArray  # number of its rack, below n_rack
    home: IntArray  # first group of its rack, which has its pool
    first: IntArray  # (n_rack + 1,) position of each rack's first group in a row of `by_rack`
    # (n_level, n_group) groups in the order in which a job takes them: of all racks, and rack by rack
    by_preference: IntArray
    by_rack: IntArray
    allowed: BoolArray  # (n_set, n_group) whether the jobs of a set may use the nodes of a group
    # (n_job,) MiB that a job requests per node; its row of `by_preference` and `by_rack`; its row of `allowed`
    memory: IntArray
    level: IntArray
    eligible: IntArray
    offers: IntArray  # (n_rack, 5) scratch
    scratch: IntArray


class JobArrays(NamedTuple):
    """Jobs, (n_job,) each, in the order (submit, id), which is also the tie rule."""

    submit: IntArray  # ns
    nodes: IntArray  # whole nodes of all tasks
    remote: IntArray  # MiB of remote memory per node; on mixed nodes, of the node with most local memory that the job may use
    able: BoolArray  # whether the job fits the empty machine; the others are rejected
    # ns of work: true, and as the scheduler expects it
    work: IntArray
    expected_work: IntArray
    runtime: IntArray  # ns, true runtime with all memory near
    length: IntArray  # ns, a lower bound of the expected runtime; the expected runtime itself unless `Rules.varies`
    # slowdown: see `model.rules.FixedSlowdown`; (0,), like the next five, unless `Rules.varies`
    near: FloatArray
    far: FloatArray
    weight: FloatArray
    # the same as the scheduler expects it
    believed_near: FloatArray
    believed_far: FloatArray
    believed_weight: FloatArray
    # whether the replay may stop once this job and all other awaited jobs have started; (0,) if there are none
    awaited: BoolArray
    mixed: MixedArrays | None  # None if all jobs may use all nodes, which do not differ


class Rules(NamedTuple):
    """Rules of a replay."""

    anywhere: bool  # whether a node may use any pool (scope "system")
    closed: bool  # whether closed forms decide: in scope "rack", on nodes that do not differ
    varies: bool  # whether the runtime of a job with remote memory depends on its placement
    by_node: bool  # whether it depends on each node's share of remote memory, since nodes differ in local memory
    backfill: int  # NONE, EASY, EASY_NO_EXTRA, CONSERVATIVE or AT_INTERVALS
    # WORST, MEAN or PAPER
    spread: int
    believed_spread: int
    nodes_only: bool  # whether the head's reservation assumes `RackArrays.unlimited_pool` for the pools
    warm_up: int  # the first jobs run first come, first served without backfilling until the last of them has started
    per_event: bool  # one pass for each event instead of one for each instant
    separate_order: bool  # whether backfill candidates have their own order
    capped: bool  # whether jobs that have waited for longer than a cap come first, in submit order
    patience: int  # ns of the cap, without the backlog
    backlogs: float  # multiples of the backlog's age that are added to the cap
    nodes: int  # nodes of the machine


class RackArrays(NamedTuple):
    """Racks, or groups of mixed nodes, (n_rack,) each unless another shape is given."""

    # free nodes, free MiB of the pool
    free: IntArray
    pool: IntArray
    # the same at the head's shadow time, if runs end as expected
    shadow_free: IntArray
    shadow_pool: IntArray
    # nodes that the head could use then, and cannot spare (closed forms; see `reservation.compute_extra`); scratch without them
    offered: IntArray
    required: IntArray
    rank: IntArray  # racks by free nodes, most first, ties by index: the order in which a rack for an entire job is searched
    # (n_rack, 4) limits of a job that fits entirely in one rack, one row per rack of `rank`; columns named below
    whole: IntArray
    unlimited_pool: IntArray  # MiB assumed for a pool that is taken to be unlimited, 0 if the rack has no pool
    # nodes and MiB of the placement found last
    take: IntArray
    borrow: IntArray
    # owner of the nodes, of the pool
    node_owner: IntArray
    pool_owner: IntArray
    of_owner: IntArray  # (n_owner,) rack of each owner
    # resource of nodes, of memory
    node_column: int
    memory_column: int


# Columns of RackArrays.whole: most nodes and MiB of a job that ends by the head's shadow time; of one that ends after it
NODES_NOW, MEMORY_NOW, LONG_NODES, LONG_MEMORY = range(4)
# Results of `closed_form.classify`: a job may start; an exact test has to decide; it may not start
STARTABLE, UNDECIDED, BLOCKED = range(3)


class ChangeArrays(NamedTuple):
    """Changes of the racks' capacity, perhaps none, and jobs deferred or lost because of them."""

    # (n_change,) ns, ascending; the rack, and nodes or MiB that it gains or loses
    time: IntArray
    rack: IntArray
    amount: IntArray
    of_pool: BoolArray  # (n_change,) whether its pool changes, not its nodes
    # (n_rack,) current capacity of racks and pools, used or not
    nodes: IntArray
    memory: IntArray
    max_request: IntArray  # (2,) the most nodes, and the most remote memory per node, requested by any job that can ever run
    requeues: BoolArray  # (1,) whether jobs that lose their nodes or memory are requeued
    deferred: IntArray  # (n_job,) jobs that would not fit the machine even if it were empty; the first `now.deferred` count
    rejected_after: IntArray  # (n_job,) changes applied before each job in `RunArrays.rejected` was rejected
    lost: BoolArray  # (n_run,) whether a run was aborted; grown by the caller on ROOM, with the columns of runs


class WaitingArrays(NamedTuple):
    """Columns of the waiting jobs by their positions in the queue, contiguous for scans."""

    # (n_job,) the columns of `JobArrays` for each job in `QueueArrays.job`
    nodes: IntArray
    remote: IntArray
    length: IntArray
    chosen: IntArray  # (n_job,) scratch of a pass
    area: IntArray  # (n_job,) node-seconds that each job, waiting or not, adds to the backlog; (0,) without a cap


class ReservationCacheArrays(NamedTuple):
    """Reservations made by the last passes, and changes since that may affect each of them; see `reservation_cache`."""

    ranked: IntArray  # (n_job,) waiting jobs in priority order, the first `now.ranked` count
    place: IntArray  # (n_job,) position of each of them
    key: FloatArray  # (n_job,) their keys
    # (n_job,) ns, the earliest interval that was free for a job when it was last computed; start -1 if unknown
    start: IntArray
    end: IntArray
    # (n_job, n_rack) nodes and MiB of its placement there
    take: IntArray
    borrow: IntArray
    # (n_job,) lead in nodes of the rack that holds the entire placement over the next one; -1 with several racks
    margin: IntArray
    counted: BoolArray  # (n_job,) whether the profile counts the reservation
    # (n_job,) ns, the interval within which more may have become free for the job; until 0 for none
    gain_from: IntArray
    gain_until: IntArray
    # (n_job,) ns, the interval within which less may be free for the job; until 0 for none
    loss_from: IntArray
    loss_until: IntArray
    loss_on: IntArray  # (n_job,) bits of the racks on which less may be free


class StepArrays(NamedTuple):
    """The minimum that is free from now until any time, a step function; see `candidate_filter`."""

    time: IntArray  # (n_instant,) ns ascending, at which it decreases; the first is now
    # (n_instant,) sums over the racks of their minima
    nodes: IntArray
    memory: IntArray
    # (n_instant, n_rack)
    free: IntArray
    pool: IntArray


class ProfileStatus:
    """Record of the changing scalars of a profile; see `kernels.common.state.record`."""

    instants: int  # instants in use
    present: int  # the instant that is now, those before it are past
    length_found: int  # ns of the interval found last
    merged: int  # instants in use when those without changes were last dropped
    steps: int  # steps in use
    steps_until: int  # ns before which all steps are known
    single_rack: int  # rack that holds the entire candidate found last, -1 if none does


class ProfileArrays(NamedTuple):
    """Availability profile of conservative backfilling: free capacity from each of a sequence of instants."""

    time: IntArray  # (n_instant,) ns ascending; grown by the caller on INSTANTS
    # (n_instant,) free nodes of all racks, free MiB of all pools
    nodes: IntArray
    memory: IntArray
    # (n_rack, n_instant)
    free: IntArray
    pool: IntArray
    # (n_instant,) reservations that begin at an instant; at instants without one, no rack has less than before
    begins: IntArray
    status: ProfileStatus  # scalars
    # (n_rack,) the minimum over an interval
    least_free: IntArray
    least_pool: IntArray
    low: IntArray  # (n_instant,) scratch of a search: instants of an interval, except its first, at which reservations begin
    # (n_rack,) scratch of a search: the minimum over the later part of them
    recent_free: IntArray
    recent_pool: IntArray
    # (n_instant, n_rack) scratch of a search: the minimum from each of them to the end of the earlier part
    tail_free: IntArray
    tail_pool: IntArray
    steps: StepArrays  # scratch of a pass
    # the reservations of the last passes; for (0,) jobs where reservations are held in `ReservationArrays`
    cache: ReservationCacheArrays


class ReservationArrays(NamedTuple):
    """Reservations held from pass to pass."""

    # (n_job,) ns; -1 if a job has no reservation
    start: IntArray
    end: IntArray
    # (n_job, n_rack) nodes and MiB of the placement
    take: IntArray
    borrow: IntArray
    ranked: IntArray  # (n_job,) scratch of a pass: waiting jobs in priority order
    begin: IntArray  # (n_job,) scratch: starts of the ranked jobs' reservations


class DueArrays(NamedTuple):
    """Current runs by their expected ends."""

    run: IntArray  # (n_job,) current runs, latest first
    # (n_job,) runs that ended before their expected end, the first `now.early` count; see `RackNow.profile_valid`
    early: IntArray


class RackNow(Now):
    """Changing scalars of a replay on racks."""

    shadow_tracked: int  # 1 while `RackArrays.shadow_free` and `.shadow_pool` are updated from head to head
    extra_nodes: int  # extra capacity beyond the head's reservation: see `reservation.compute_extra`
    extra_memory: int
    extra_per_node: int
    surplus: int
    pool_per_node: int  # bounds of the racks now: see `closed_form.prepare_bounds`
    free: int
    long_split: int
    first: int  # first waiting job by priority until `first_until`, -1 if unknown; unused with a tree
    first_until: int
    indexed: int  # 1 while the tree holds the queue
    depth: int  # number of waiting jobs above which a tree holds the queue
    rechecked: int  # deferred jobs that did not fit when last rechecked
    front: int  # ns; jobs submitted by then come first, in submit order
    ranked: int  # jobs in `ReservationCacheArrays.ranked`
    profile_valid: int  # 1 if the profile is that of the last pass, except for the time, new arrivals and the runs in `early`
    early: int
    backlog: int  # sum of `WaitingArrays.area` over the waiting jobs, if there is a cap
    oldest: int  # row before which no job waits, if there is a cap


class RackState(NamedTuple):
    """Arrays of every replay on racks."""

    jobs: JobArrays
    # of the queue and of backfilling; the same if backfilling has no order of its own
    order: Order
    backfill_order: Order
    rules: Rules
    racks: RackArrays
    queue: QueueArrays
    waiting: WaitingArrays
    runs: RunArrays
    due: DueArrays
    now: RackNow
