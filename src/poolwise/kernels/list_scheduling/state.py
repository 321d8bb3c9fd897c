"""The arrays that kernels share, grouped by what they describe. Names and shapes are the interface of this package."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from poolwise.arrays import BoolArray, FloatArray, IntArray

# Order.kind
STATIC, LINEAR, CUBIC, ASKED, AFFINE = range(5)
# Rules.backfill
NONE, EASY, EASY_NO_EXTRA, CONSERVATIVE = range(4)
# Rules.spread, Rules.believed_spread
WORST, MEAN, PAPER = range(3)
# What `replay` returns
DONE, ASK, ROOM, INSTANTS, DEEP, SHALLOW, LATE, PAUSED, RENEW = range(9)


class JobArrays(NamedTuple):
    """(n_job,) each, in the order (submit, id), which is the tie rule.

    Attributes
    ----------
    submit : ns
    nodes : whole nodes of all tasks
    remote : MiB of remote memory per node
    able : whether the job fits the empty machine; the others are rejected
    work, asked : ns of work, and as the scheduler expects it
    runtime : ns, true runtime with all memory near
    length : ns, a lower bound of the expected runtime; the expected runtime itself in scope "rack"
    near, far, weight : see `model.rules.FixedSlowdown`; these and the next are (0,) in scope "rack", where all memory is near
    believed_near, believed_far, believed_weight : the same as the scheduler expects it
    sought : whether a replay may stop when this job and the others that are sought have started; (0,) where none are
    """

    submit: IntArray
    nodes: IntArray
    remote: IntArray
    able: BoolArray
    work: IntArray
    asked: IntArray
    runtime: IntArray
    length: IntArray
    near: FloatArray
    far: FloatArray
    weight: FloatArray
    believed_near: FloatArray
    believed_far: FloatArray
    believed_weight: FloatArray
    sought: BoolArray


class Demands(Protocol):
    """What a tree over the waiting jobs reads of them, (n_job,) each: two demands, and how long they last at least."""

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
    """How the key of a job (its negative priority) follows from its wait w in seconds.

    Attributes
    ----------
    kind : STATIC or ASKED (the keys are given), LINEAR (x * weight, x = w / pace), CUBIC (x * x * x * weight) or AFFINE
        (offset + w * weight)
    key : (n_job,) negative priority, smaller first, ties by row; where it changes, written where reservations are kept only
    submit : (n_job,) ns
    pace, weight, offset : (n_job,), or (0,) where the kind has none
    rate : (n_job,) or (0,); w * rate grows as the priority does, up to rounding: what the index compares. Of an AFFINE order
        what a job's priority gains in a ns
    """

    kind: int
    key: FloatArray
    submit: IntArray
    pace: FloatArray
    weight: FloatArray
    rate: FloatArray
    offset: FloatArray


class Rules(NamedTuple):
    """What a replay follows.

    Attributes
    ----------
    anywhere : whether a node may use any pool (scope "system")
    backfill : NONE, EASY, EASY_NO_EXTRA or CONSERVATIVE
    spread, believed_spread : WORST, MEAN or PAPER
    nodes_only : whether the head's reservation takes `RackArrays.endless` for the pools
    warm_up : the first jobs run first come, first served without backfilling until the last of them has started
    per_event : one pass for each event instead of one for each instant
    apart : whether what is tried beside the head has an order of its own
    capped : whether jobs that have waited for too long come first, those that were submitted first in front
    patience : ns of that wait, apart from the backlog
    backlogs : how many times the age of the backlog comes on top
    nodes : of the machine
    """

    anywhere: bool
    backfill: int
    spread: int
    believed_spread: int
    nodes_only: bool
    warm_up: int
    per_event: bool
    apart: bool
    capped: bool
    patience: int
    backlogs: float
    nodes: int


class RackArrays(NamedTuple):
    """(n_rack,) each where nothing else is said.

    Attributes
    ----------
    free, pool : free nodes, free MiB of the pool
    then_free, then_pool : the same at the head's shadow time, when what runs ends as expected
    offered, kept : nodes that the head might have then, and cannot do without (scope "rack"; see `reservation.spare`)
    rank : racks by free nodes, most first, then lowest first: the order in which one is looked for that holds a whole job
    whole : (n_rack, 4) what a job that one rack holds whole may take, a row for each rack of `rank`; columns named below
    endless : MiB that a pool counts as where it is taken for inexhaustible, 0 where there is none
    take, borrow : nodes and MiB of the placement found last
    node_owner, pool_owner : owner of the nodes, of the pool
    of_owner : (n_owner,) rack of each owner
    node_column, memory_column : resource of nodes, of memory
    """

    free: IntArray
    pool: IntArray
    then_free: IntArray
    then_pool: IntArray
    offered: IntArray
    kept: IntArray
    rank: IntArray
    whole: IntArray
    endless: IntArray
    take: IntArray
    borrow: IntArray
    node_owner: IntArray
    pool_owner: IntArray
    of_owner: IntArray
    node_column: int
    memory_column: int


# Columns of RackArrays.whole: nodes and MiB of a job that ends by the head's shadow time; of one that does not, at most those
NODES_NOW, MEMORY_NOW, LASTING_NODES, LASTING_MEMORY = range(4)
# What they say of waiting jobs: one or more may start, surely; perhaps; none may
WELCOME, PERHAPS, REFUSED = range(3)


class ChangeArrays(NamedTuple):
    """Changes of the racks' capacity, and what becomes of jobs.

    Attributes
    ----------
    time, rack, amount : (n_change,) ns, ascending; the rack, and nodes or MiB that it gains or loses
    of_pool : (n_change,) whether its pool changes, not its nodes
    nodes, memory : (n_rack,) what racks and pools have now, whoever uses it
    most : (2,) the most nodes, and the most remote memory per node, that any job asks for which may ever run
    requeues : (1,) whether jobs that lose their nodes or memory wait again
    aside : (n_job,) jobs that wait until the machine, if it were empty, would hold them; the first `now[ASIDE]` count
    after : (n_job,) changes that had happened when each job in `RunArrays.rejected` was turned away
    lost : (n_run,) whether a run was lost; grown by the caller on ROOM, with the columns of runs
    """

    time: IntArray
    rack: IntArray
    amount: IntArray
    of_pool: BoolArray
    nodes: IntArray
    memory: IntArray
    most: IntArray
    requeues: BoolArray
    aside: IntArray
    after: IntArray
    lost: BoolArray


class QueueArrays(NamedTuple):
    """The waiting jobs, in no order.

    Attributes
    ----------
    job : (n_job,), the first `now[WAITING]` count
    nodes, remote, length : (n_job,) the columns of `JobArrays` of each job in `job`: a scan reads them one after the other
    since : (n_job,) number of the pass in which each job in `job` joined
    where : (n_job,) position of each job in `job`, -1 if it does not wait
    chosen : (n_job,) scratch of a pass
    warm : (n_job,) warm-up jobs that wait, first come, first served; from `now[WARM_FIRST]` to `now[WARM_LAST]`
    area : (n_job,) node-seconds that each job, waiting or not, counts for in the backlog; (0,) where the rules know no cap
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
    path : (n_job,) distinct numbers below 2 ** n_bit, jobs of like demands near each other
    at : (n_job,) node at which a waiting job rests
    node : (2 * n_job, 8) what is known of the jobs at and below a node; its columns are named below. The root is node 1, nodes
        2 * k and 2 * k + 1 are those below fork k
    bit : (n_job,) bit of the paths that leads to one or the other node below a fork
    above : (n_job,) node at which a fork is, 0 for the root's; of a fork not in use the next one
    forks : (2,) the first fork of those not in use, 0 for none; the largest ever in use
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


# Columns of Tree.node, a cache line: the fork where the ways of its jobs part; the first job by priority, and the ns until
# which it surely stays the first; the least nodes, remote memory per node and `JobArrays.length` of any job; the most nodes and
# remote memory
FORK, WINNER, UNTIL, NODES, REMOTE, LENGTH, MOST_NODES, MOST_REMOTE = range(8)
# Column FORK, if there is none: nobody is there, or one job
EMPTY, RESTING = 0, -1


class ReservationCacheArrays(NamedTuple):
    """The reservations that the last passes made, and what has changed since around each of them; see `standing`.

    Attributes
    ----------
    ranked : (n_job,) waiting jobs in priority order, the first `now[RANKED]` count
    place : (n_job,) position of each of them
    key : (n_job,) their keys
    start, end : (n_job,) ns, the earliest interval that was free for a job when it was last looked for; start -1 if unknown
    take, borrow : (n_job, n_rack) nodes and MiB of its placement there
    spare : (n_job,) nodes by which the rack that holds all of the placement was ahead of the next one, -1 with several racks
    counted : (n_job,) whether the profile counts the reservation
    more_from, more_until : (n_job,) ns, the interval within which more may have become free for the job; until 0 for none
    less_from, less_until : (n_job,) the same of less
    less_on : (n_job,) bits of the racks on which less may be free
    """

    ranked: IntArray
    place: IntArray
    key: FloatArray
    start: IntArray
    end: IntArray
    take: IntArray
    borrow: IntArray
    spare: IntArray
    counted: BoolArray
    more_from: IntArray
    more_until: IntArray
    less_from: IntArray
    less_until: IntArray
    less_on: IntArray


class StepArrays(NamedTuple):
    """The least that is free from now until any time, which falls in steps; see `hope`.

    Attributes
    ----------
    time : (n_instant,) ns ascending, when it falls; the first is now
    nodes, memory : (n_instant,) sums over the racks of the least of each
    free, pool : (n_instant, n_rack)
    """

    time: IntArray
    nodes: IntArray
    memory: IntArray
    free: IntArray
    pool: IntArray


class ProfileArrays(NamedTuple):
    """What is free from each of a list of instants on: what conservative backfilling plans with.

    Attributes
    ----------
    time : (n_instant,) ns ascending; grown by the caller on INSTANTS
    nodes, memory : (n_instant,) free nodes of all racks, free MiB of all pools
    free, pool : (n_rack, n_instant)
    begins : (n_instant,) reservations that begin at an instant; elsewhere no rack has less than before
    size : (7,) by the columns named below
    least_free, least_pool : (n_rack,) the least over an interval
    low : (n_instant,) scratch of a search: instants of an interval, but for its first, at which reservations begin
    recent_free, recent_pool : (n_rack,) scratch of a search: the least at the later part of them
    tail_free, tail_pool : (n_instant, n_rack) scratch of a search: the least from each of them to the end of their earlier part
    steps : scratch of a pass
    standing : the reservations of the last passes; of (0,) jobs where reservations are kept, which `KeptArrays` holds
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
    standing: ReservationCacheArrays


# Columns of ProfileArrays.size: instants in use; the instant that is now, those before it are over; the length (ns) of the
# interval found last; instants in use when those at which nothing changes were dropped last; steps in use, the time
# (ns) before which all are known, and the rack that holds the job whole that was last found to be hopeful, -1 if none does
INSTANT_COUNT, PRESENT, LENGTH_FOUND, MERGED, STEP_COUNT, SEEN_UNTIL, WHOLE_ON = range(7)


class KeptArrays(NamedTuple):
    """Reservations that are kept from pass to pass.

    Attributes
    ----------
    start, end : (n_job,) ns; -1 where a job has no reservation
    take, borrow : (n_job, n_rack) nodes and MiB of the placement
    ranked : (n_job,) scratch of a pass: waiting jobs in priority order
    begin : (n_job,) scratch: when the reservations of the ranked jobs begin
    """

    start: IntArray
    end: IntArray
    take: IntArray
    borrow: IntArray
    ranked: IntArray
    begin: IntArray


class RunArrays(NamedTuple):
    """Runs in the order of their starts: the record, and those at work.

    Attributes
    ----------
    job, start, end, expected : (n_job,) row of the job, ns
    offset : (n_job + 1,) rows offset[k]:offset[k+1] are run k's placement
    owner, resource, amount : (n_row,) nodes before memory; grown by the caller on ROOM
    ending : (n_job,) heap of the runs at work by (end, run), the first `now[RUNNING]` count
    due : (n_job,) runs at work by expected end, latest first
    rejected : (n_job,) jobs turned away, in that order
    early : (n_job,) runs that ended before they were expected to, the first `now[EARLY]` count; see `STANDING`
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


# Rows of `now`, the (N_NOW,) int64 numbers that change
(
    TIME,
    NEXT,  # row of the next arrival
    WAITING,
    RUNNING,
    STARTED,  # runs so far
    REJECTED,
    PASSES,
    PHASE,
    QUIET,  # 1 if the batch held nothing but jobs turned away
    WARM_FIRST,
    WARM_LAST,
    WARM,  # 1 while the warm-up lasts
    HEAD,  # job of the reservation that is kept, -1 for none
    SHADOW,  # ns; NEVER before the first head's
    FORESEEN,  # 1 while what is free then, see `RackArrays.then_free`, goes on being followed from head to head
    WINDOW,  # how long a run may take that is to end by SHADOW
    SPARE_NODES,  # what the head leaves over at its shadow time: see `reservation.spare`
    SPARE_MEMORY,
    SPARE_MOST,
    SURPLUS,
    AMPLE,  # what the racks allow now: see `verdict.weigh`
    FREE,
    LASTING_SPLIT,
    FIRST,  # waiting job that is first by priority until FIRST_UNTIL, -1 if that has to be found out; not with a tree
    FIRST_UNTIL,
    ROWS,  # rows wanted, on ROOM and INSTANTS
    SETTLED,  # 1 if the last pass started nothing and nothing ended since: only jobs that arrive now may start
    INDEXED,  # 1 while the tree holds the queue
    DEPTH,  # waiting jobs beyond which the queue is held in a tree
    PAUSE,  # passes after which the caller is told how far the replay is
    RENEWAL,  # ns from which on keys are others than those written: the next recalculation
    SOUGHT,  # sought jobs that have not started; the replay stops at 0
    STOP,  # ns after which nothing is replayed
    CHANGES,  # changes of capacity so far
    LAST_GAIN,  # changes up to the last that gives something, included
    ASIDE,
    JUDGED,  # jobs aside that the machine could not hold when they were last looked at
    FRONT,  # ns; jobs that were submitted by then come first, those that were submitted first in front
    RANKED,  # jobs in `ReservationCacheArrays.ranked`
    STANDING,  # 1 if the profile is that of the last pass, but for the time, for what arrived and for the runs in `early`
    EARLY,
    BACKLOG,  # sum of `QueueArrays.area` over the waiting jobs, where there is a cap
    OLDEST,  # row before which no job waits, where there is a cap
    N_NOW,
) = range(44)

TAKE_EVENTS, MAKE_PASS, ASKED_PASS = range(3)
"""Values of now[PHASE]: where `replay` goes on."""
