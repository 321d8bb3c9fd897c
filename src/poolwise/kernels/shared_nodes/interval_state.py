"""Arrays of backfilling at intervals on shared nodes: a main scheduler in priority order, and backfill passes."""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.common.formula import Formula
from poolwise.kernels.common.state import IntervalRules
from poolwise.kernels.shared_nodes.head_state import BlockArrays
from poolwise.kernels.shared_nodes.state import CounterArrays, NodeArrays


class SharedIntervalStatus:
    """Record of the scalars that change from pass to pass; see `kernels.common.state.record`."""

    wake: int  # ns of the next pass if nothing happens before, NEVER for none
    runs: int  # runs in `SharedReleases`
    segments: int  # segments in use
    best: int  # jobs in `LineArrays.best`, including those that have left the queue since the last pass
    worst: int  # job that precedes or is the first waiting job outside `LineArrays.best`; -1 if none waits outside
    best_next: int  # `now.next` and `now.renewal` as of the last pass; -1 for the latter if there was none
    best_renewal: int
    left: int  # jobs in `LineArrays.heap`
    tested: int  # jobs in `LineArrays.tested`
    planned: int  # jobs in `LineArrays.planned`
    # `now.version` and `now.renewal` for which the plan was begun
    version: int
    renewal: int
    holds_until: int  # ns before which a new pass would plan them in the same way, unless a run starts or ends
    able: int  # nodes in `TrialArrays.able`
    reservations: int  # reservations of single nodes in use
    ended: int  # number of ends by the start found last
    chosen: int  # number of nodes chosen for it, in `TrialArrays.ahead.chosen`
    # what a pass depends on besides time, as of the last change: `now.version`, `now.next`, `now.renewal`
    seen_version: int
    seen_next: int
    seen_renewal: int
    considered: int  # most jobs that the main scheduler has considered since then, in vain
    idle_until: int  # ns before which a further backfill pass starts nothing; 0 if none was made since then
    closing: int  # ns from which windows close more nodes to some waiting job


class LineArrays(NamedTuple):
    """The waiting jobs by priority."""

    best: IntArray  # (n_best,) waiting jobs that come before all others by priority, in any order: see `status.best`
    is_best: BoolArray  # (n_job,) scratch: whether a job is among them
    heap: IntArray  # (n_job,) scratch: the waiting jobs, then those that a backfill pass has still to test
    candidate: IntArray  # (n_depth,) all jobs that a backfill pass tests, in any order
    tested: IntArray  # (n_depth,) the first of them by priority: those tested so far, except for those that started
    planned: IntArray  # (n_depth,) the first jobs by priority that the last backfill pass planned, none of which started


class ComponentArrays(NamedTuple):
    """Components: sets of nodes whose partitions overlap, perhaps through others. Jobs of two components never compete."""

    of_set: IntArray  # (n_set,) component of each set of nodes
    # (n_component,) position in `LineArrays.candidate` of a job that could start now, their number if there is none; and the
    # number of jobs in `LineArrays.planned` up to which those of the component have their reservations
    able: IntArray
    reserved: IntArray


class GroupArrays(NamedTuple):
    """Limits of a backfill pass on the jobs of a group; see `PassTimes.groups` and `PassTimes.reserved_jobs`."""

    most: IntArray  # (n_limit,) number of jobs of a group that a pass tests
    of: IntArray  # (n_limit, n_job) group of each job
    tested: IntArray  # (n_limit, n_group) scratch: jobs of each group that a pass tests
    partition: IntArray  # (n_job,) partitions of each job, as a number
    reserved: IntArray  # (n_partition,) jobs that the pass has found to start later, and for which it may reserve nodes


class SharedReleases(NamedTuple):
    """The current runs by expected end."""

    run: IntArray  # (n_job,)
    end: IntArray  # (n_job,) ns, at least one second from now
    due: IntArray  # (n_job,) scratch: the same for each run
    node: IntArray  # (n_job,) node of a run of one part, -1 for several
    # (n_node,) parts on a node; (n_node, n_slot) positions of their runs, ascending, and their kinds, -1 behind the last
    parts: IntArray
    part: IntArray
    kind_on: IntArray
    sorts: IntArray  # (1,) number of times that the runs were sorted; a run that begins again continues the count
    changed_at: IntArray  # (n_node,) `sorts` when the kinds on a node last changed


class SharedSegments(NamedTuple):
    """Segments of the planning window, in order, and the nodes reserved in each of them for waiting jobs."""

    # (n_segment,) ns; grown by the caller on INSTANTS
    begin: IntArray
    end: IntArray
    row: IntArray  # (n_segment,) row of `held` and `twice`
    # (n_segment, n_word) nodes that are reserved, and those that are reserved twice, `WORD` nodes per word; reservations of a
    # node only overlap in segments without length
    held: IntArray
    twice: IntArray
    falls: BoolArray  # (n_segment,) whether a node is reserved less often in the next segment
    reserved_from: IntArray  # (n_node,) ns of the first reservation of a node that ends after now, NEVER for none
    # (n_node,) first reservation of a node in order of time, and (n_reservation,) the next one on its node, -1 for none
    first: IntArray
    next: IntArray
    # (n_reservation,) ns of the first and last segment that holds it
    since: IntArray
    until: IntArray


class TrialArrays(NamedTuple):
    """Scratch of the search for a start: when nodes can hold a part, and which are reserved in the interval."""

    # (n_word,) nodes that are reserved at any time of an interval, and those that never fit a part of the job
    held: IntArray
    never: IntArray  # (n_class, n_word) nodes that never fit a part of a job of a class
    class_of: IntArray  # (n_kind,) class of each kind
    # (n_row, n_node) parts on a node that have to end before it can hold a part of a kind, `NEVER` if it never can; (n_row,)
    # the kind of each row, and `SharedReleases.sorts` when it was computed
    needed: IntArray
    kind: IntArray
    at: IntArray
    fits_after: IntArray  # (n_node,) number of ends after which a node can hold a part of the job, `NEVER` if it never can
    # (n_node,) nodes that ever can, the first `status.able` count; ns from which each of them can, -1 for now; and ns from
    # which it is not reserved for the length of the job
    able: IntArray
    ready: IntArray
    free_from: IntArray
    least: IntArray  # (n_node,) the least of the times, or numbers of ends, at which each node can hold a part
    usable: IntArray  # (n_word,) all nodes
    area: IntArray  # (n_set, n_word) open nodes of the partitions of the jobs with each set of nodes and closed groups
    weight: IntArray  # (n_node,) rank of each node's weight; with `rules.busy_nodes`, nodes are in this order
    ahead: NodeArrays  # the nodes with what is free then


class SharedIntervals(NamedTuple):
    """Arrays of backfilling at intervals."""

    rules: IntervalRules
    status: SharedIntervalStatus
    formula: Formula
    line: LineArrays
    components: ComponentArrays
    groups: GroupArrays
    counters: CounterArrays
    blocks: BlockArrays
    releases: SharedReleases
    segments: SharedSegments
    trial: TrialArrays
