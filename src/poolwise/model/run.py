"""Runs: tasks of one job that started together at one placement."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model.placement import Placement
from poolwise.short_repr import short_repr


@dataclass(frozen=True, slots=True)
class Fetch:
    """Data that a run transfers to its placement before its work begins, over links that it shares with other runs.

    Attributes
    ----------
    work : int, duration (ns) of the transfer if each flow gets its full bandwidth
    bandwidth : int, full bandwidth of each flow, MB/s
    routes : the links of each flow, as positions in the fabric; none is empty
    touches : owners whose occupancy changes the pace of the transfer; the run occupies them while it fetches

    Examples
    --------
    >>> from poolwise.interfaces import Fetch
    >>> Fetch(work=10**9, bandwidth=1250, routes=((0, 4),), touches=(8, 12)).bandwidth
    1250
    """

    __repr__ = short_repr

    work: int
    bandwidth: int
    routes: tuple[tuple[int, ...], ...]
    touches: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Running tasks of a job.

    Attributes
    ----------
    id : number of the run, counting from 0; negative in a snapshot that only imagines it (`Snapshot.with_started`)
    job : row of the job table
    tasks : numbers of the tasks
    placement : resources that it holds
    start, expected_end : ns; the end is the scheduler's estimate, never the true one
    fetch : data that it is fetching; None once its work has begun

    Examples
    --------
    >>> from poolwise.interfaces import Placement, Run
    >>> run = Run(0, job=3, tasks=(0,), placement=Placement.of([(0, 0, 0, 2)]), start=0, expected_end=3600 * 10**9)
    >>> run.fetch is None
    True
    """

    __repr__ = short_repr

    id: int
    job: int
    tasks: tuple[int, ...]
    placement: Placement
    start: int
    expected_end: int
    fetch: Fetch | None = None


@dataclass(frozen=True, slots=True)
class Resized:
    """Change of a run's placement at a time (ns)."""

    run: int
    time: int
    placement: Placement
