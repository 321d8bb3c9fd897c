"""Performance models that each break one promise."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from poolwise.conformance import check_model
from poolwise.conformance.cases import Case, devices
from poolwise.interfaces import PerformanceModel
from poolwise.model import Changes, Decisions, Fetch, Kind, Placement, Queue, Run, Snapshot, Start, Workload
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.quantities import SECOND
from tests.helpers.broken import Bent, draws, failed


@dataclass(frozen=True)
class Halfway(PerformanceModel):
    wait: object = 0
    slow: float = 0.0
    owners: tuple[int, ...] = field(default=())

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        return self.wait

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        return self.slow

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        return self.owners


@dataclass(frozen=True)
class Crowd(Halfway):
    """A model whose slowdown depends on all runs, without owners in touches."""

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        return 0.1 * sum(1 for _ in snapshot.runs())


@dataclass(frozen=True)
class OwnLinksOnly(NetworkSharing):
    """A model that names only the links of its run, though the other links of a throttled neighbor matter too."""

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        if not super().touches(placement, snapshot):
            return ()
        assert snapshot.machine.fabric is not None
        devices = [o for o in placement.owners() if snapshot.machine.kind[o] == Kind.DEVICE]
        path = snapshot.machine.fabric.path(placement.owners()[0], devices[0])
        return snapshot.machine.fabric.link_owners(sorted(path))


@dataclass(frozen=True)
class Moody(Halfway):
    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        return float(draws.random())


LONG = Fetch(100 * SECOND, 1, ((0,),), ())


@dataclass(frozen=True)
class Brings(Halfway):
    """A model whose pace of fetching depends on all runs."""

    what: Fetch = field(default=LONG)
    crowd: float = 0.0

    def fetch(self, run: Run, snapshot: Snapshot) -> Fetch | None:
        return self.what if snapshot.machine.fabric is not None else None

    def fetch_slowdown(self, run: Run, snapshot: Snapshot) -> float:
        return self.slow + self.crowd * sum(1 for _ in snapshot.runs())


OVER_LINKS = "fetches for whole nanoseconds over links of the machine"


@pytest.mark.parametrize(
    ("model", "name", "says"),
    [
        (Halfway(wait=-1), "returns a setup of whole nanoseconds, at least 0", "setup -1"),
        (Halfway(wait=0.5), "returns a setup of whole nanoseconds, at least 0", "setup 0.5"),
        (Halfway(owners=(99,)), "returns owners of the machine from touches", "(99,)"),
        (Crowd(), "returns from touches every owner that its slowdown depends on", "but nothing on the owners"),
        (Brings(crowd=0.1), "returns from touches every owner that its slowdown depends on", "the pace of fetching of run"),
        (Brings(what=Fetch(1, 1, ((99,),), ())), OVER_LINKS, "routes=((99,),)"),
        (Brings(what=Fetch(1, 1, ((),), ())), OVER_LINKS, "routes=((),)"),
        (Brings(what=Fetch(1, 0, ((0,),), ())), OVER_LINKS, "bandwidth=0"),
        (Brings(what=replace(LONG, touches=(99,))), "returns owners of the machine from touches", "(99,)"),
    ],
    ids=["negative", "fraction", "stranger", "crowd", "crowd-fetching", "no-link", "no-way", "no-bandwidth", "far-touches"],
)
def test_broken_model_is_detected(model: PerformanceModel, name: str, says: str) -> None:
    problems = failed(check_model(model))
    assert says in problems[name]


@dataclass(frozen=True)
class InTurn(Bent):
    """A scheduler that starts jobs on arrival at given (node, device)."""

    places: tuple[tuple[int, int], ...]

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        places = [(job, *self.places[job]) for job in queue.jobs.tolist()]
        return Decisions(
            tuple(Start(j, (0,), Placement.of([(0, node, 0, 1), (0, device, 1, 0)])) for j, node, device in places)
        )


def test_model_that_ignores_throttled_neighbors_is_detected() -> None:
    """A and B share port 0 (1250 MB/s), B and C port 2 (400). When C comes, B falls from 400 to 200 and A gains 200."""
    workload = Workload.of(np.arange(4), np.full(4, 90), requests={"bandwidth": np.full(4, 2000)})
    case = Case(workload, devices().machine, InTurn(((0, 5), (0, 6), (3, 6), (1, 5))))
    name = "returns from touches every owner that its slowdown depends on"
    assert failed(check_model(NetworkSharing(), case)) == {}
    problem = failed(check_model(OwnLinksOnly(), case))[name]
    assert f"run 0 changed from {2000 / 850 - 1} to {2000 / 1050 - 1}, but nothing on the owners (8, 9) changed" in problem


def test_invalid_and_random_slowdowns_are_detected() -> None:
    for slowdown in (-1.0, float("inf"), float("nan")):
        assert failed(check_model(Halfway(slow=slowdown)))
    assert "is deterministic" in failed(check_model(Moody()))
