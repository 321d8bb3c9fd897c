"""Arrays shared by the kernels, grouped by subject. Their names and shapes are the interface of this package.

Orders, the tree over the waiting jobs and their constants are those of `kernels.list_scheduling`.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, FloatArray, IntArray

# SharedRules.placement
FIRST_FIT, BEST_FIT, WORST_FIT, PACKED = range(4)
# Dimensions of a part's request and a node's capacity; after them, other countable resources, then device types
CORES, MEMORY, FURTHER = range(3)


class SharedRules(NamedTuple):
    """Rules of a replay.

    Attributes
    ----------
    placement : FIRST_FIT, BEST_FIT, WORST_FIT or PACKED
    backfill : NONE, EASY, EASY_NO_EXTRA or CONSERVATIVE of `list_scheduling.state`
    spread, believed_spread : WORST, MEAN or PAPER of `list_scheduling.state`
    warm_up : the first jobs run first come, first served without backfilling until the last of them has started
    per_event : one pass for each event instead of one for each instant
    cores : cores of all nodes, an upper bound of the parts that start in a pass, since each uses at least one
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
    """Jobs, (n_job,) each, in the order (submit, id), which is also the tie rule.

    Attributes
    ----------
    submit : ns
    nodes, remote : number of the job's kind (without windows), and cores of one part: the demands by which the tree over a
        queue is laid out
    length : ns that the scheduler expects with all memory in the nodes; a lower bound if memory is borrowed
    able : whether the job fits the empty machine; the others are rejected
    work, expected_work : ns of work: true, and as the scheduler expects it
    near, far : slowdown if all memory is in the pool of the own rack, or of the machine; (0,), like the next two, if no
        job is slowed down
    believed_near, believed_far : the same as the scheduler expects it
    awaited : whether the replay may stop once this job and all other awaited jobs have started; (0,) if there are none
    """

    submit: IntArray
    nodes: IntArray
    remote: IntArray
    length: IntArray
    able: BoolArray
    work: IntArray
    expected_work: IntArray
    near: FloatArray
    far: FloatArray
    believed_near: FloatArray
    believed_far: FloatArray
    awaited: BoolArray


class KindArrays(NamedTuple):
    """Kinds of jobs, (n_kind,) each: jobs of a kind have equal requests. Kinds are sorted by request, memory last.

    With windows on k groups of nodes, each kind has 2^k consecutive numbers, one for each set of groups that may be closed.

    Attributes
    ----------
    request : (n_kind, n_dim) request of one part
    parts : number of parts, each on its own node
    eligible : set of nodes
    group : equal for adjacent kinds that differ only in memory
    fits, fits_at : whether a job of the kind fitted, in the state with the number `fits_at`
    short, short_at : how many more nodes had to hold a part for it to fit, when `short_at` releases had happened; 0 if it
        fitted or was not tested
    first_node : the first node that then held a job of one part; -1 if none did, if it may borrow memory, or if not tested
    room, room_at : whether it then left the head room beyond the shadow time, in the reservation with the number `room_at`
    """

    request: IntArray
    parts: IntArray
    eligible: IntArray
    group: IntArray
    fits: BoolArray
    fits_at: IntArray
    short: IntArray
    short_at: IntArray
    first_node: IntArray
    room: BoolArray
    room_at: IntArray


class NodeArrays(NamedTuple):
    """Free capacity. Nodes are the leaves of a binary tree, the first at `top.shape[0] // 2`; the root is 1.

    Attributes
    ----------
    top : (2 * n_leaf, n_dim) maximum per dimension that any node below has free; -1 without a node
    open : (n_set, 2 * n_leaf) whether any node below belongs to a set
    group : (n_node,) groups of nodes with windows that contain the node, as bits
    rack : (n_node,) racks, numbered from 0
    first : (n_rack + 1,) nodes first[r]:first[r + 1] are those of rack r, if PACKED
    last_rack : (1,) rack chosen last
    pool_of : (n_node,) memory pool that serves the node, -1 if none does
    pool : (n_pool,) free MiB
    distant : (n_pool,) whether it is the pool of the machine
    released : (n_last,) ring buffer of nodes with released capacity; it holds the last n_last of `now[RELEASED]` releases
    with_cores : (n_class,) nodes with at least this number of free cores; this and the next are (0,) if no placement needs them
    bits : (n_class, n_word) the set of these nodes, `WORD` nodes per word
    idle : (n_node, n_type) free devices of each type, as bits
    chosen, borrow : (n_node,) nodes of the placement found last, and MiB that each of its parts borrows from the pool
    key, line : (n_node,) scratch
    tally : (n_rack,) scratch
    owner, pool_owner : owner of a node, of a pool
    device : (n_node, n_type, most) owners of devices
    column : (n_dim,) resource of each dimension; the device resource for device types
    order : (n_dim - n_type,) dimensions in the order of the machine's columns, as placements list them
    """

    top: IntArray
    open: BoolArray
    group: IntArray
    rack: IntArray
    first: IntArray
    last_rack: IntArray
    pool_of: IntArray
    pool: IntArray
    distant: BoolArray
    released: IntArray
    with_cores: IntArray
    bits: IntArray
    idle: IntArray
    chosen: IntArray
    borrow: IntArray
    key: IntArray
    line: IntArray
    tally: IntArray
    owner: IntArray
    pool_owner: IntArray
    device: IntArray
    column: IntArray
    order: IntArray


WORD = 32
"""Nodes per word of `NodeArrays.bits`; a word is never negative."""


class TimelineArrays(NamedTuple):
    """Expected ends of the runs on each node, and when each node can hold a part of the head.

    Attributes
    ----------
    size : (n_node,) parts on a node
    until : (n_node, n_slot) ns, expected ends of the parts on a node, ascending; the first `size` count
    run_of, kind, local : (n_node, n_slot) run, kind and MiB of the node's own memory of each part
    first_end : (n_leaf * 2,) a tree like `NodeArrays.top`: ns of the first expected end on any node below
    ready : (n_leaf * 2,) a tree of the same form: when any node below can hold a part of kind `now[READY_KIND]`, NEVER if
        none can; a lower bound for nodes not evaluated yet
    exact : (n_node,) whether `ready` is exact, not a lower bound
    instant : (n_count,) ns up to which nodes that can hold a part are counted, -1 for none. For each set of groups that may
        be closed (one set without windows), the time at which enough nodes for all parts can, NEVER if never;
        with windows, the last count is for the head's shadow time
    closed : (n_count,) groups of nodes that each count excludes, as bits
    earlier, holding : (n_count,) nodes that can hold a part before that time, and by then
    stale : (n_node,) nodes whose `ready` is outdated, the first `now[STALE]` count
    is_stale : (n_node,) whether a node is among them
    front : (n_leaf * 2,) scratch
    """

    size: IntArray
    until: IntArray
    run_of: IntArray
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
    """Availability profile of conservative backfilling: a list of steps for each node, net of reservations.

    Attributes
    ----------
    first : (n_node,) first step of each node, which begins now
    time : (n_step,) ns at which a step begins; grown by the caller on INSTANTS, with the next two
    next : (n_step,) next step on the same node, -1 for none
    free : (n_step, n_dim) free capacity until that step
    used : (1,) steps in use
    hold : (n_job,) ns that a job's reservation lasts
    available : (n_node,) scratch: when a node can hold a part
    line : (n_job,) scratch: the waiting jobs in order
    """

    first: IntArray
    time: IntArray
    next: IntArray
    free: IntArray
    used: IntArray
    hold: IntArray
    available: IntArray
    line: IntArray


class ShadowArrays(NamedTuple):
    """The machine at the shadow time of a head that may borrow memory from pools; unused without pools.

    Attributes
    ----------
    free : (n_node, n_dim)
    pool, spent : (n_pool,) MiB, and scratch
    due, ends : (n_job,), (n_run,) scratch: the current runs by expected end, and the expected end of each run
    """

    free: IntArray
    pool: IntArray
    spent: IntArray
    due: IntArray
    ends: IntArray


class OutageArrays(NamedTuple):
    """Failures and repairs of nodes, and the jobs deferred or lost because of them.

    Attributes
    ----------
    time, node, up : (n_change,) ns, ascending; a node, and whether it is repaired or fails
    free : (n_node, n_dim) total capacity of a node
    requeues : (1,) whether jobs that lose a node are requeued
    fits_empty, checked_at : (n_kind,) whether a job of the kind would fit the empty machine, after `checked_at` changes
    deferred : (n_job,) jobs that would not fit, the first `now[DEFERRED]` count
    lost : (n_run,) whether a run was aborted; grown by the caller on ROOM, with all columns of runs and of their parts
    """

    time: IntArray
    node: IntArray
    up: BoolArray
    free: IntArray
    requeues: BoolArray
    fits_empty: BoolArray
    checked_at: IntArray
    deferred: IntArray
    lost: BoolArray


class WindowArrays(NamedTuple):
    """Windows in which nodes are kept free.

    Attributes
    ----------
    start, end, group : (n_window,) ns, by start; number of the group of its nodes
    ends : (n_window,) ns, ascending
    user : (n_kind,) class of users whose jobs of the kind have the same rights to windows
    usable : (n_user, n_window) whether their jobs may use the nodes of a window
    coming : (n_user, n_group) ns at which the first window on a group begins, of those that are not over and that their jobs
        may not use, NEVER if there is none
    """

    start: IntArray
    end: IntArray
    group: IntArray
    ends: IntArray
    user: IntArray
    usable: BoolArray
    coming: IntArray


class SharedQueue(NamedTuple):
    """The waiting jobs, unordered.

    Attributes
    ----------
    job : (n_job,), the first `now[WAITING]` count
    since : (n_job,) number of the pass in which each job in `job` joined
    where : (n_job,) position of each job in `job`, -1 if it does not wait
    warm : (n_job,) waiting warm-up jobs, first come, first served; from `now[WARM_FIRST]` to `now[WARM_LAST]`
    """

    job: IntArray
    since: IntArray
    where: IntArray
    warm: IntArray


class SharedRuns(NamedTuple):
    """Runs in the order of their starts: the record, and those still running.

    Attributes
    ----------
    job, start, end, expected : (n_job,) row of the job, ns
    part : (n_job + 1,) parts part[k]:part[k+1] are run k's
    node, borrow : (n_part,) node, and MiB from its pool
    offset : (n_job + 1,) rows offset[k]:offset[k+1] are run k's placement
    owner, resource, amount : (n_row,) the placement; grown by the caller on ROOM
    ending : (n_job,) heap of the current runs by (end, run), the first `now[RUNNING]` count
    rejected : (n_job,) rejected jobs, in the order of rejection
    """

    job: IntArray
    start: IntArray
    end: IntArray
    expected: IntArray
    part: IntArray
    node: IntArray
    borrow: IntArray
    offset: IntArray
    owner: IntArray
    resource: IntArray
    amount: IntArray
    ending: IntArray
    rejected: IntArray


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
    HEAD,  # job with the last reservation, -1 for none
    READY_KIND,  # kind for which `TimelineArrays.ready` is valid, -1 for none
    STALE,
    WINDOW,  # longest expected runtime that ends by SHADOW
    SHADOW,  # ns, for the job `now[HEAD]`
    COUNTED,  # index of the count of `TimelineArrays` for the head's shadow time
    SHADOW_KIND,  # kind of the head for which `ShadowArrays` is valid, -1 for none
    BORROWS,  # 1 if the head may borrow memory from pools: `ShadowArrays` then decides
    STATE,  # number of changes of the free capacity
    RELEASED,  # number of releases, one per node
    CHANGES,  # failures and repairs so far
    LAST_REPAIR,  # changes up to and including the last repair
    DEFERRED,
    ENDED,  # windows that are over
    PASSED,  # index of the first window, by start, that is not over
    NEXT_SHIFT,  # ns from which a rejected candidate would be placed on other nodes, because of a window
    RESERVATION,  # number of reservations and of starts since
    SETTLED,  # 1 if the last pass started nothing and no run has ended since: only jobs that arrive now may start
    ROWS,  # rows requested on ROOM; steps on INSTANTS
    WARM_FIRST,
    WARM_LAST,
    WARM,  # 1 while the warm-up lasts
    PAUSE,  # passes after which the kernel returns PAUSED, for progress reports
    AWAITED,  # awaited jobs that have not started; the replay stops at 0
    STOP,  # ns after which no event is replayed
    N_NOW,
) = range(35)

APPLY_EVENTS, MAKE_PASS, KEYED_PASS = range(3)
"""Values of now[PHASE]: the place at which `replay` resumes."""
