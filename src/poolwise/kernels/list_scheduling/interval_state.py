"""Arrays of backfilling at intervals: a main scheduler in strict priority order, and backfill passes."""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import FloatArray, IntArray
from poolwise.kernels.common.state import IntervalRules


class IntervalStatus:
    """Record of the scalars that change from pass to pass; see `kernels.common.state.record`."""

    wake: int  # ns of the next pass if nothing happens before, NEVER for none
    counted: int  # 1 while the counts of demands are those of the queue
    current: int  # 1 while the first `ranked` jobs of the ranking are the first waiting jobs by priority
    ranked: int
    runs: int  # runs in `ReleaseArrays`
    segments: int  # segments in use
    planned: int  # jobs in `RankArrays.planned`
    holds_until: int  # ns before which a new pass would plan them in the same way, unless a run starts or ends
    known: int  # segments for which `SegmentArrays.least_nodes` and `.least_memory` are up to date
    later: int  # ns at which the reservations met last first decrease, -1 for never


class RankArrays(NamedTuple):
    """The waiting jobs by priority and by demand."""

    job: IntArray  # (n_ranked,) the first waiting jobs by priority, the first `status.ranked` count
    key: FloatArray  # (n_job,) keys of the ranked jobs
    planned: IntArray  # (n_ranked,) the first jobs by priority that the last backfill pass planned, none of which started
    demand: IntArray  # (n_job,) demand of each job; jobs of equal demands have equal nodes and memory
    # (n_demand,) nodes, MiB of remote memory per node, and the number of waiting jobs
    nodes: IntArray
    remote: IntArray
    waiting: IntArray


class ReleaseArrays(NamedTuple):
    """The current runs by expected end, and the capacity that their ends release."""

    end: IntArray  # (n_run,) ns, at least one second from now
    run: IntArray  # (n_run,)
    # (n_run + 1, n_rack) nodes and MiB that are free after the first k ends
    free: IntArray
    pool: IntArray
    # (n_rack,) capacity
    nodes: IntArray
    memory: IntArray
    # (n_rack,) scratch: the most reserved at any time of an interval, and what is free along with the reservations
    most_nodes: IntArray
    most_memory: IntArray
    room: IntArray
    pool_room: IntArray


class SegmentArrays(NamedTuple):
    """Segments of the planning window, in order: the amounts reserved in each of them for waiting jobs."""

    # (n_segment,) ns; grown by the caller on INSTANTS
    begin: IntArray
    end: IntArray
    ended: IntArray  # (n_segment,) runs that have ended by then
    # (n_segment, n_rack) nodes and MiB reserved
    nodes: IntArray
    memory: IntArray
    most: IntArray  # (n_segment,) nodes that are not reserved, if all runs have ended
    total: IntArray  # (n_segment,) sum of `least_nodes` over the racks
    # (n_segment, n_rack) the minimum free along with the reservations of this segment and all before it
    least_nodes: IntArray
    least_memory: IntArray
    # (n_segment, n_rack) scratch of a search: the minimum from this segment to the last one met
    tail_nodes: IntArray
    tail_memory: IntArray


class IntervalArrays(NamedTuple):
    """Arrays of backfilling at intervals."""

    rules: IntervalRules
    status: IntervalStatus
    rank: RankArrays
    releases: ReleaseArrays
    segments: SegmentArrays
