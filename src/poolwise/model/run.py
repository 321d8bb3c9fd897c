"""A run: tasks of one job that started together at one placement."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.model.placement import Placement


@dataclass(frozen=True, slots=True)
class Fetch:
    """Data that a run brings to where it runs before its work begins, over links that it shares with others.

    Attributes
    ----------
    work : int, ns that it takes where each flow gets the bandwidth it asks for
    bandwidth : int, MB/s that each flow asks for
    routes : the links of each flow, positions in the fabric; none of them is empty
    touches : owners whose occupancy changes its pace; the run occupies them for as long as it fetches
    """

    work: int
    bandwidth: int
    routes: tuple[tuple[int, ...], ...]
    touches: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Tasks of a job at work.

    Attributes
    ----------
    id : number of the run, counting from 0; negative in a snapshot that only imagines it (`Snapshot.with_started`)
    job : row of the job table
    start, expected_end : ns; the end is the scheduler's estimate, never the truth
    fetch : the data that it is fetching; None from the moment at which its work begins
    """

    id: int
    job: int
    tasks: tuple[int, ...]
    placement: Placement
    start: int
    expected_end: int
    fetch: Fetch | None = None


@dataclass(frozen=True, slots=True)
class Resized:
    """A run was given another placement at a time (ns)."""

    run: int
    time: int
    placement: Placement
