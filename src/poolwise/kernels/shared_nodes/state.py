"""The arrays that kernels share, grouped by what they describe. Names and shapes are the interface of this package.

Orders, the tree over the waiting jobs and the rules that number both are those of `kernels.list_scheduling`.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, FloatArray, IntArray

# SharedRules.placement
FIRST_FIT, BEST_FIT, WORST_FIT, PACKED = range(4)
# Dimensions of what a part asks for and a node has; further ones are what else is counted, then types of devices
CORES, MEMORY, FURTHER = range(3)


class SharedRules(NamedTuple):
    """What a replay follows.

    Attributes
    ----------
    placement : FIRST_FIT, BEST_FIT, WORST_FIT or PACKED
    backfill : NONE, EASY, EASY_NO_EXTRA or CONSERVATIVE of `list_scheduling.state`
    spread, believed_spread : WORST, MEAN or PAPER of `list_scheduling.state`
    warm_up : the first jobs run first come, first served without backfilling until the last of them has started
    per_event : one pass for each event instead of one for each instant
    cores : cores of all nodes: no more parts start in a pass, as each takes one at least
    parts, rows : most parts of a job, and rows of the placement of a part
    """

    placement: int
    backfill: int
    spread: int
    believed_spread: int
    warm_up: int
    per_event: bool
    cores: int
    parts: int
    rows: int


class SharedJobs(NamedTuple):
    """(n_job,) each, in the order (submit, id), which is the tie rule.

    Attributes
    ----------
    submit : ns
    nodes, remote : number of the job's kind (away from windows), and cores of one part: the demands by which the tree over a
        queue is laid out
    length : ns that the scheduler expects it to run with all memory in the nodes; no more than with any of it in pools
    able : whether the job fits the empty machine; the others are rejected
    work, asked : ns of work, and as the scheduler expects it
    near, far : slowdown where all memory is in the pool of the own rack, or of the machine; (0,) as the next two where no
        job is slowed down
    believed_near, believed_far : the same as the scheduler expects it
    sought : whether a replay may stop when this job and the others that are sought have started; (0,) where none are
    """

    submit: IntArray
    nodes: IntArray
    remote: IntArray
    length: IntArray
    able: BoolArray
    work: IntArray
    asked: IntArray
    near: FloatArray
    far: FloatArray
    believed_near: FloatArray
    believed_far: FloatArray
    sought: BoolArray


class KindArrays(NamedTuple):
    """(n_kind,) each: jobs of a kind ask for the same. Kinds are numbered by all that they ask for, memory last.

    Where there are windows of nodes in k groups, each kind has 2^k numbers in a row, for each set of groups that may be shut.

    Attributes
    ----------
    ask : (n_kind, n_dim) what one part asks for
    parts : parts, each on a node of its own
    eligible : set of nodes
    group : the same for neighbours that differ in memory alone
    fits, fits_at : whether a job of the kind found room, in the state with the number `fits_at`
    short, short_at : how many nodes more had to hold a part for it to find room, when `short_at` nodes had been given something
        back; 0 where it did, or nobody asked
    spot : the first node that then held a job of one part, -1 where none did, it may borrow memory, or nobody asked
    room, room_at : whether it then left the head room beyond the shadow time, in the reservation with the number `room_at`
    """

    ask: IntArray
    parts: IntArray
    eligible: IntArray
    group: IntArray
    fits: BoolArray
    fits_at: IntArray
    short: IntArray
    short_at: IntArray
    spot: IntArray
    room: BoolArray
    room_at: IntArray


class NodeArrays(NamedTuple):
    """What is free. Nodes are the leaves of a binary tree, the first at `top.shape[0] // 2`; the root is 1.

    Attributes
    ----------
    top : (2 * n_leaf, n_dim) the most of each dimension that any node below has free; -1 where there is none
    open : (n_set, 2 * n_leaf) whether any node below belongs to a set
    group : (n_node,) groups of nodes with windows to which the node belongs, a bit each
    rack : (n_node,) racks, numbered from 0 on
    first : (n_rack + 1,) nodes first[r]:first[r + 1] are those of rack r, if PACKED
    likely : (1,) rack that was taken last
    pool_of : (n_node,) memory pool that serves the node, -1 where none does
    pool : (n_pool,) free MiB
    distant : (n_pool,) whether it is that of the machine
    given : (n_last,) nodes that were given something back, in turn; those after the first `now[GIVEN]` - n_last are still there
    having : (n_class,) how many nodes have so many free cores or more; (0,) this and the next where no placement asks
    bits : (n_class, n_word) which nodes they are, `WORD` to a word
    idle : (n_node, n_type) free devices of each type, a bit each
    chosen, lack : (n_node,) nodes of the placement found last, and MiB of each of its parts that come from the pool
    key, line : (n_node,) scratch
    tally : (n_rack,) scratch
    owner, pool_owner : owner of a node, of a pool
    device : (n_node, n_type, most) owners of devices
    column : (n_dim,) resource of each dimension, that of devices for the types
    order : (n_dim - n_type,) dimensions in the order of the machine's columns, as placements name them
    """

    top: IntArray
    open: BoolArray
    group: IntArray
    rack: IntArray
    first: IntArray
    likely: IntArray
    pool_of: IntArray
    pool: IntArray
    distant: BoolArray
    given: IntArray
    having: IntArray
    bits: IntArray
    idle: IntArray
    chosen: IntArray
    lack: IntArray
    key: IntArray
    line: IntArray
    tally: IntArray
    owner: IntArray
    pool_owner: IntArray
    device: IntArray
    column: IntArray
    order: IntArray


WORD = 32
"""Nodes to a word of `NodeArrays.bits`: a number that is never negative."""


class TimelineArrays(NamedTuple):
    """Who is on each node until when, and when each node could hold a part of the head.

    Attributes
    ----------
    size : (n_node,) parts on a node
    until : (n_node, n_slot) ns, expected ends of the parts on a node, ascending; the first `size` count
    by, kind, local : (n_node, n_slot) run, kind and MiB taken from the node of each part
    first_end : (n_leaf * 2,) a tree like `NodeArrays.top`: ns of the first expected end on any node below
    ready : (n_leaf * 2,) a tree of the same kind: when any node below could hold a part of the kind `now[AWAITED]`, NEVER if
        none could; a lower bound for nodes that nobody asked about
    exact : (n_node,) whether it is no bound, but the time itself
    instant : (n_count,) ns up to which nodes that could hold a part are counted, -1 for none. For each set of groups that may
        be shut, of which there is one away from windows, it is when as many nodes could as there are parts, NEVER if never;
        beside windows the last count is for the head's shadow time
    closed : (n_count,) groups of nodes that are left out of each count, a bit each
    earlier, holding : (n_count,) how many nodes could before that time, and by then
    stale : (n_node,) nodes for which it has changed, the first `now[STALE]` count
    is_stale : (n_node,) whether a node is among them
    front : (n_leaf * 2,) scratch
    """

    size: IntArray
    until: IntArray
    by: IntArray
    kind: IntArray
    local: IntArray
    first_end: IntArray
    ready: IntArray
    exact: BoolArray
    instant: IntArray
    closed: IntArray
    earlier: IntArray
    holding: IntArray
    stale: IntArray
    is_stale: BoolArray
    front: IntArray


class ProfileSteps(NamedTuple):
    """What each node has free from now on, beside reservations: lists of steps. It is what conservative backfilling plans with.

    Attributes
    ----------
    first : (n_node,) first step of each node, which begins now
    time : (n_step,) ns at which a step begins; grown by the caller on INSTANTS, with the next two
    next : (n_step,) step that follows on the same node, -1 for none
    free : (n_step, n_dim) what is free until then
    used : (1,) steps in use
    hold : (n_job,) ns that a job's reservation lasts
    opens : (n_node,) scratch: when a node could hold a part
    line : (n_job,) scratch: the waiting jobs in order
    """

    first: IntArray
    time: IntArray
    next: IntArray
    free: IntArray
    used: IntArray
    hold: IntArray
    opens: IntArray
    line: IntArray


class ThenArrays(NamedTuple):
    """The machine at the shadow time of a head that may take memory of pools; of no use where there are none.

    Attributes
    ----------
    free : (n_node, n_dim)
    pool, spent : (n_pool,) MiB, and scratch
    due, ends : (n_job,), (n_run,) scratch: the runs at work by expected end, and that end of each run
    """

    free: IntArray
    pool: IntArray
    spent: IntArray
    due: IntArray
    ends: IntArray


class OutageArrays(NamedTuple):
    """Nodes that fail and are repaired.

    Attributes
    ----------
    time, node, up : (n_change,) ns, ascending; a node, and whether it is repaired or fails
    free : (n_node, n_dim) what a node has
    requeues : (1,) whether jobs that lose a node wait again
    held, held_at : (n_kind,) whether the machine would hold a job of the kind if it were empty, after so many changes
    aside : (n_job,) jobs that wait until it would, the first `now[ASIDE]` count
    lost : (n_run,) whether a run was lost; grown by the caller on ROOM, with all columns of runs and of their parts
    """

    time: IntArray
    node: IntArray
    up: BoolArray
    free: IntArray
    requeues: BoolArray
    held: BoolArray
    held_at: IntArray
    aside: IntArray
    lost: BoolArray


class WindowArrays(NamedTuple):
    """Windows in which nodes are kept free.

    Attributes
    ----------
    start, end, group : (n_window,) ns, by start; number of the group of its nodes
    ends : (n_window,) ns, ascending
    who : (n_kind,) whose jobs they are, as far as windows are concerned
    usable : (n_who, n_window) whether their jobs may use the nodes of a window
    coming : (n_who, n_group) ns at which the first window on a group begins, of those that are not over and that their jobs may
        not use, NEVER if there is none
    """

    start: IntArray
    end: IntArray
    group: IntArray
    ends: IntArray
    who: IntArray
    usable: BoolArray
    coming: IntArray


class SharedQueue(NamedTuple):
    """The waiting jobs, in no order.

    Attributes
    ----------
    job : (n_job,), the first `now[WAITING]` count
    since : (n_job,) number of the pass in which each job in `job` joined
    where : (n_job,) position of each job in `job`, -1 if it does not wait
    warm : (n_job,) warm-up jobs that wait, first come, first served; from `now[WARM_FIRST]` to `now[WARM_LAST]`
    """

    job: IntArray
    since: IntArray
    where: IntArray
    warm: IntArray


class SharedRuns(NamedTuple):
    """Runs in the order of their starts: the record, and those at work.

    Attributes
    ----------
    job, start, end, expected : (n_job,) row of the job, ns
    part : (n_job + 1,) parts part[k]:part[k+1] are run k's
    node, lack : (n_part,) node, and MiB from its pool
    offset : (n_job + 1,) rows offset[k]:offset[k+1] are run k's placement
    owner, resource, amount : (n_row,) the placement; grown by the caller on ROOM
    ending : (n_job,) heap of the runs at work by (end, run), the first `now[RUNNING]` count
    rejected : (n_job,) jobs turned away, in that order
    """

    job: IntArray
    start: IntArray
    end: IntArray
    expected: IntArray
    part: IntArray
    node: IntArray
    lack: IntArray
    offset: IntArray
    owner: IntArray
    resource: IntArray
    amount: IntArray
    ending: IntArray
    rejected: IntArray


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
    HEAD,  # job that had the last reservation, -1 for none
    AWAITED,  # kind for which `TimelineArrays.ready` holds, -1 for none
    STALE,
    WINDOW,  # how long a run may take that is to end by SHADOW
    SHADOW,  # ns, for the job `now[HEAD]`
    COUNTED,  # which of the counts of `TimelineArrays` is that of the head's shadow time
    KEPT,  # kind for whose head `ThenArrays` hold, -1 for none
    BORROWS,  # 1 if the head may take memory of pools: `ThenArrays` say what it is left
    STATE,  # counts the changes of what is free
    GIVEN,  # counts the nodes that were given something back
    CHANGES,  # failures and repairs so far
    LAST_REPAIR,  # changes up to the last repair, included
    ASIDE,
    ENDED,  # windows that are over
    PASSED,  # windows that began before all others and are over
    ELSEWHERE,  # ns from which a job that was refused would be placed elsewhere, since a window is in its way then
    PROMISE,  # counts the reservations, and what is started beside them
    SETTLED,  # 1 if the last pass started nothing and nothing ended since: only jobs that arrive now may start
    ROWS,  # rows wanted, on ROOM; steps on INSTANTS
    WARM_FIRST,
    WARM_LAST,
    WARM,  # 1 while the warm-up lasts
    PAUSE,  # passes after which the caller is told how far the replay is
    SOUGHT,  # sought jobs that have not started; the replay stops at 0
    STOP,  # ns after which nothing is replayed
    N_NOW,
) = range(35)

TAKE_EVENTS, MAKE_PASS, ASKED_PASS = range(3)
"""Values of now[PHASE]: where `replay` goes on."""
