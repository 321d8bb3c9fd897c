"""Arrays shared by the kernels, grouped by subject. Their names and shapes are the interface of this package."""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.kernels.common.state import Now, Order, QueueArrays, RunArrays, Tree

# SharedRules.placement
FIRST_FIT, BEST_FIT, WORST_FIT, PACKED, TREE, CONSECUTIVE = range(6)
"""Placements; from `PACKED` on, a node that cannot hold a part may change the choice of the others."""
# Dimensions of a part's request and a node's capacity; after them, other countable resources, then device types
CORES, MEMORY = range(2)


class SharedRules(NamedTuple):
    """Rules of a replay."""

    placement: int  # FIRST_FIT, BEST_FIT, WORST_FIT, PACKED, TREE or CONSECUTIVE
    backfill: int  # NONE, EASY, EASY_NO_EXTRA, CONSERVATIVE, AT_INTERVALS or SEVERAL_HEADS of `common.state`
    # WORST, MEAN or PAPER of `common.state`
    spread: int
    believed_spread: int
    warm_up: int  # the first jobs run first come, first served without backfilling until the last of them has started
    per_event: bool  # one pass for each event instead of one for each instant
    cores: int  # cores of all nodes, an upper bound of the parts that start in a pass, since each uses at least one
    # most parts of a job, and rows of the placement of a part
    parts: int
    rows: int


class SharedJobs(NamedTuple):
    """Jobs, (n_job,) each, in the order (submit, id), which is also the tie rule."""

    submit: IntArray  # ns
    kind: IntArray  # number of the job's kind, without windows
    # ns that the scheduler expects with all memory in the nodes, a lower bound if memory is borrowed; at intervals, the limit
    length: IntArray
    able: BoolArray  # whether the job fits the empty machine; the others are rejected
    # ns of work: true, and as the scheduler expects it
    work: IntArray
    expected_work: IntArray
    # slowdown if all memory is in the pool of the own rack, or of the machine; (0,), like the next two, if no job is
    # slowed down
    near: FloatArray
    far: FloatArray
    # the same as the scheduler expects it
    believed_near: FloatArray
    believed_far: FloatArray
    # whether the replay may stop once this job and all other awaited jobs have started; (0,) if there are none
    awaited: BoolArray
    warm_rank: IntArray  # order of the warm-up jobs; (0,) if it is the order of the jobs, because no job has a higher tier


class KindArrays(NamedTuple):
    """Kinds of jobs, (n_kind,) each: jobs of a kind have equal requests. Kinds are sorted by request, memory last.

    With windows on k groups of nodes, each kind has 2^k consecutive numbers, one for each set of groups that may be closed.
    """

    request: IntArray  # (n_kind, n_dim) request of one part
    parts: IntArray  # number of parts, each on its own node
    eligible: IntArray  # set of nodes
    more: BoolArray  # whether it requests devices or countable resources other than cores and memory
    group: IntArray  # equal for adjacent kinds that differ only in memory
    # whether a job of the kind fitted, when `now.version` was `fits_at`
    fits: BoolArray
    fits_at: IntArray
    # how many more nodes had to hold a part for it to fit, when `short_at` releases had happened; 0 if it fitted or was
    # not tested
    short: IntArray
    short_at: IntArray
    # the first node that then held a job of one part; -1 if none did, if it may borrow memory, or if not tested
    first_node: IntArray
    # whether it then left the head room beyond the shadow time, in the reservation with the number `room_at`
    room: BoolArray
    room_at: IntArray


class NodeArrays(NamedTuple):
    """Free capacity. Nodes are the leaves of a binary tree, the first at `top.shape[0] // 2`; the root is 1."""

    top: IntArray  # (2 * n_leaf, n_dim) maximum per dimension that any node below has free; -1 without a node
    open: BoolArray  # (n_set, 2 * n_leaf) whether any node below belongs to a set
    group: IntArray  # (n_node,) groups of nodes with windows that contain the node, as bits
    rack: IntArray  # (n_node,) racks, numbered from 0
    first: IntArray  # (n_rack + 1,) nodes first[r]:first[r + 1] are those of rack r, if PACKED or TREE
    last_rack: IntArray  # (1,) rack chosen last
    # (n_node,) number of a node on the machine plus n_node + 1 for each lower weight: neighbors of one weight differ by 1
    number: IntArray
    pool_of: IntArray  # (n_node,) memory pool that serves the node, -1 if none does
    pool: IntArray  # (n_pool,) free MiB
    distant: BoolArray  # (n_pool,) whether it is the pool of the machine
    # (n_last,) ring buffer of nodes with released capacity; it holds the last n_last of `now.released` releases
    released: IntArray
    # (n_class,) nodes with at least this number of free cores; this and the next are (0,) if no placement needs them
    with_cores: IntArray
    bits: IntArray  # (n_class, n_word) the set of these nodes, `WORD` nodes per word
    idle: IntArray  # (n_node, n_type) free devices of each type, as bits
    # (n_node,) nodes of the placement found last, and MiB that each of its parts borrows from the pool
    chosen: IntArray
    borrow: IntArray
    # (n_node,) scratch
    key: IntArray
    line: IntArray
    tally: IntArray  # (n_rack,) scratch
    # owner of a node, of a pool
    owner: IntArray
    pool_owner: IntArray
    device: IntArray  # (n_node, n_type, most) owners of devices
    column: IntArray  # (n_dim,) resource of each dimension; the device resource for device types
    order: IntArray  # (n_dim - n_type,) dimensions in the order of the machine's columns, as placements list them


WORD = 32
"""Nodes per word of `NodeArrays.bits`; a word is never negative."""


class TimelineArrays(NamedTuple):
    """Expected ends of the runs on each node, and when each node can hold a part of the head."""

    size: IntArray  # (n_node,) parts on a node
    until: IntArray  # (n_node, n_slot) ns, expected ends of the parts on a node, ascending; the first `size` count
    # (n_node, n_slot) run, kind and MiB of the node's own memory of each part
    run_of: IntArray
    kind: IntArray
    local: IntArray
    first_end: IntArray  # (n_leaf * 2,) a tree like `NodeArrays.top`: ns of the first expected end on any node below
    # (n_leaf * 2,) a tree of the same form: when any node below can hold a part of kind `now.ready_kind`, NEVER if none
    # can; a lower bound for nodes not evaluated yet
    ready: IntArray
    exact: BoolArray  # (n_node,) whether `ready` is exact, not a lower bound
    # (n_count,) ns up to which nodes that can hold a part are counted, -1 for none. For each set of groups that may be
    # closed (one set without windows), the time at which enough nodes for all parts can, NEVER if never; with windows,
    # the last count is for the head's shadow time
    instant: IntArray
    closed: IntArray  # (n_count,) groups of nodes that each count excludes, as bits
    # (n_count,) nodes that can hold a part before that time, and by then
    earlier: IntArray
    holding: IntArray
    stale: IntArray  # (n_node,) nodes whose `ready` is outdated, the first `now.stale` count
    is_stale: BoolArray  # (n_node,) whether a node is among them
    shifted: BoolArray  # (n_node,) whether runs on a node began, or ended after their expected end
    vacant: IntArray  # (n_node,) ns, the latest expected end of the runs on a node that ended before it; 0 if none did
    front: IntArray  # (n_leaf * 2,) scratch


class NodeReservationStatus:
    """Record of the scalars of the kept reservations; see `kernels.common.state.record`."""

    last: int  # number of this pass, or else the last one that built the profile; -1 before the first one
    outages: int  # `now.changes` in the last pass
    version: int  # `now.version` after the last pass, -1 if the profile is lost
    holds: int  # 1 if all starts since the profile was built are what it had reserved
    lined: int  # jobs in `ProfileSteps.line`
    planned: int  # the first of them, whose reservations are in the profile
    occupied: int  # parts subtracted from the profile since it was built
    changed: int  # nodes in `NodeReservations.changed`
    reserved: int  # jobs in `NodeReservations.sequence`
    at: int  # position in it of the next job
    follows: int  # 1 while the jobs of this pass have the order of the last one
    candidate: int  # job for which `NodeReservations.witness` is valid, -1 for none
    moves: int  # 1 if a job has to reserve again; from and until when (ns) its reservation may begin
    since: int
    until: int
    # the first of the changed nodes that can hold a part of it first, -1 if none can up to its reservation, and when (ns)
    node: int
    time: int


class NodeReservations(NamedTuple):
    """Reservations made by the last passes, and the nodes that have changed since; see `reservation_cache`."""

    status: NodeReservationStatus
    made_at: IntArray  # (n_job,) number of the pass in which a reservation was made or found unchanged, -1 for none
    start: IntArray  # (n_job,) ns
    offset: IntArray  # (n_job + 1,) first row in `node` of each job
    node: IntArray  # (n_part,)
    # (n_job,) jobs with a reservation after the last pass, by priority, and those of this pass
    sequence: IntArray
    following: IntArray
    changed_at: IntArray  # (n_node,) number of the last pass in which the runs or reservations of a node changed
    changed: IntArray  # (n_node,) those nodes of this pass; the first `status.changed` count
    # (n_node,) ns: outside of this interval, a node that has changed in this pass has no more free than before
    freed_from: IntArray
    freed_until: IntArray
    most: IntArray  # (n_node, n_dim) the most that it has free from `freed_from` to `freed_until`, if `is_exact`
    is_exact: BoolArray  # (n_node,)
    # (n_job,) number of the last pass that found that a waiting job cannot start now; -1 if none did, -2 for a job that is
    # not in `ProfileSteps.line`
    tested: IntArray
    witness: BoolArray  # (n_node,) nodes on which the candidate can start now


class ProfileSteps(NamedTuple):
    """Availability profile of conservative backfilling: the steps of each node, net of reservations."""

    # (n_node,) first row of each node, whose step begins when the profile is built; its number of steps, and of rows
    first: IntArray
    size: IntArray
    room: IntArray
    time: IntArray  # (n_row,) ns at which a step begins; grown by the caller on INSTANTS, with the next one
    free: IntArray  # (n_row, n_dim) free capacity until the next step
    used: IntArray  # (1,) rows in use
    hold: IntArray  # (n_job,) ns that a job's reservation lasts
    available: IntArray  # (n_node,) scratch: when a node can hold a part
    line: IntArray  # (n_job,) the waiting jobs in order, the first `kept.status.lined` count
    kept: NodeReservations


class ShadowArrays(NamedTuple):
    """The machine at the shadow time of a head that may borrow memory from pools; unused without pools."""

    free: IntArray  # (n_node, n_dim)
    # (n_pool,) MiB, and scratch
    pool: IntArray
    spent: IntArray
    # (n_job,), (n_run,) scratch: the current runs by expected end, and the expected end of each run
    due: IntArray
    ends: IntArray


class OutageArrays(NamedTuple):
    """Failures and repairs of nodes, perhaps none, and the jobs deferred or lost because of them."""

    # (n_change,) ns, ascending; a node, and whether it is repaired or fails
    time: IntArray
    node: IntArray
    up: BoolArray
    free: IntArray  # (n_node, n_dim) total capacity of a node
    requeues: BoolArray  # (1,) whether jobs that lose a node are requeued
    # (n_kind,) whether a job of the kind would fit the empty machine, after `checked_at` changes
    fits_empty: BoolArray
    checked_at: IntArray
    deferred: IntArray  # (n_job,) jobs that would not fit, the first `now.deferred` count
    # (n_run,) whether a run was aborted; grown by the caller on ROOM, with all columns of runs and of their parts
    lost: BoolArray


class WindowArrays(NamedTuple):
    """Windows in which nodes are kept free."""

    # (n_window,) ns, by start; number of the group of its nodes
    start: IntArray
    end: IntArray
    group: IntArray
    ends: IntArray  # (n_window,) ns, ascending
    user: IntArray  # (n_kind,) class of users whose jobs of the kind have the same rights to windows
    usable: BoolArray  # (n_user, n_window) whether their jobs may use the nodes of a window
    # (n_user, n_group) ns at which the first window on a group begins, of those that are not over and that their jobs may
    # not use, NEVER if there is none
    coming: IntArray


class CounterArrays(NamedTuple):
    """Counters, and the amounts that jobs use; (0,) arrays of counters if there are none."""

    # (n_counter,) limit, amount in use, and the largest amount that an admitted job of this pass uses
    capacity: IntArray
    use: IntArray
    largest: IntArray
    first: IntArray  # (n_job + 1,) demands first[k]:first[k + 1] are job k's
    # (n_demand,)
    counter: IntArray
    amount: IntArray
    admitted: BoolArray  # (n_job,) whether a waiting job was admitted to this pass


class PartArrays(NamedTuple):
    """Parts of the runs."""

    first: IntArray  # (n_job + 1,) parts first[k]:first[k+1] are run k's
    # (n_part,) node, and MiB from its pool
    node: IntArray
    borrow: IntArray


class SharedNow(Now):
    """Changing scalars of a replay on shared nodes."""

    ready_kind: int  # kind for which `TimelineArrays.ready` is valid, -1 for none
    stale: int
    counted: int  # index of the count of `TimelineArrays` for the head's shadow time
    shadow_kind: int  # kind of the head for which `ShadowArrays` is valid, -1 for none
    borrows: int  # 1 if the head may borrow memory from pools: `ShadowArrays` then decides
    version: int  # number of changes of the free capacity
    released: int  # number of releases, one per node
    ended: int  # windows that are over
    passed: int  # index of the first window, by start, that is not over
    next_shift: int  # ns from which a rejected candidate would be placed on other nodes, because of a window
    reservation: int  # number of reservations and of starts since


class SharedState(NamedTuple):
    """Arrays of every replay on shared nodes."""

    jobs: SharedJobs
    kinds: KindArrays
    order: Order
    rules: SharedRules
    nodes: NodeArrays
    timeline: TimelineArrays
    at_shadow: ShadowArrays
    queue: QueueArrays
    tree: Tree
    runs: RunArrays
    parts: PartArrays
    now: SharedNow
