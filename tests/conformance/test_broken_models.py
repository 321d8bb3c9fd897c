"""Performance models that each break one promise."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from poolwise.conformance import check_model
from poolwise.conformance.cases import Case, devices
from poolwise.interfaces import PerformanceModel
from poolwise.model import Changes, Fetch, Kind, Placement, Plan, Queue, Run, Snapshot, Start, Workload
from poolwise.performance.network_sharing import NetworkSharing
from poolwise.units import SECOND
from tests.helpers.broken import Bent, draws, failed


@dataclass(frozen=True)
class Halfway(PerformanceModel):
    wait: object = 0
    slow: float = 0.0
    owners: tuple[int, ...] = field(default=())

    def setup(self, run: Run, view: Snapshot) -> int:
        return self.wait

    def slowdown(self, run: Run, view: Snapshot) -> float:
        return self.slow

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        return self.owners


@dataclass(frozen=True)
class Crowd(Halfway):
    """Slows down with the number of runs anywhere, and does not say so."""

    def slowdown(self, run: Run, view: Snapshot) -> float:
        return 0.1 * sum(1 for _ in view.runs())


@dataclass(frozen=True)
class OwnLinksOnly(NetworkSharing):
    """Names only the links that its run crosses: a throttled neighbour's other links matter too."""

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        if not super().touches(placement, view):
            return ()
        assert view.machine.fabric is not None
        devices = [o for o in placement.owners() if view.machine.kind[o] == Kind.DEVICE]
        path = view.machine.fabric.path(placement.owners()[0], devices[0])
        return view.machine.fabric.link_owners(sorted(path))


@dataclass(frozen=True)
class Moody(Halfway):
    def slowdown(self, run: Run, view: Snapshot) -> float:
        return float(draws.random())


LONG = Fetch(100 * SECOND, 1, ((0,),), ())


@dataclass(frozen=True)
class Brings(Halfway):
    """Fetches, and is the slower the more runs there are anywhere."""

    what: Fetch = field(default=LONG)
    crowd: float = 0.0

    def fetch(self, run: Run, view: Snapshot) -> Fetch | None:
        return self.what if view.machine.fabric is not None else None

    def fetch_slowdown(self, run: Run, view: Snapshot) -> float:
        return self.slow + self.crowd * sum(1 for _ in view.runs())


OVER_LINKS = "fetches for whole nanoseconds over links of the machine"


@pytest.mark.parametrize(
    ("model", "name", "says"),
    [
        (Halfway(wait=-1), "gives a setup of whole nanoseconds, at least 0", "setup -1"),
        (Halfway(wait=0.5), "gives a setup of whole nanoseconds, at least 0", "setup 0.5"),
        (Halfway(owners=(99,)), "names owners of the machine in touches", "(99,)"),
        (Crowd(), "names in touches all that its slowdown depends on", "while nothing changed"),
        (Brings(crowd=0.1), "names in touches all that its slowdown depends on", "the pace of fetching of run"),
        (Brings(what=Fetch(1, 1, ((99,),), ())), OVER_LINKS, "routes=((99,),)"),
        (Brings(what=Fetch(1, 1, ((),), ())), OVER_LINKS, "routes=((),)"),
        (Brings(what=Fetch(1, 0, ((0,),), ())), OVER_LINKS, "bandwidth=0"),
        (Brings(what=replace(LONG, touches=(99,))), "names owners of the machine in touches", "(99,)"),
    ],
    ids=["negative", "fraction", "stranger", "crowd", "crowd-fetching", "no-link", "no-way", "no-bandwidth", "far-touches"],
)
def test_a_broken_model_is_found_out(model: PerformanceModel, name: str, says: str) -> None:
    problems = failed(check_model(model))
    assert says in problems[name]


@dataclass(frozen=True)
class InTurn(Bent):
    """Starts jobs on arrival at given (node, device)."""

    places: tuple[tuple[int, int], ...]

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        places = [(job, *self.places[job]) for job in queue.jobs.tolist()]
        return Plan(tuple(Start(j, (0,), Placement.of([(0, node, 0, 1), (0, device, 1, 0)])) for j, node, device in places))


def test_a_model_that_overlooks_what_throttles_its_neighbours_is_found_out() -> None:
    """A and B share port 0 (1250 MB/s), B and C port 2 (400). When C comes, B falls from 400 to 200 and A gains 200."""
    workload = Workload.of(np.arange(4), np.full(4, 90), requests={"bandwidth": np.full(4, 2000)})
    case = Case(devices().machine, workload, InTurn(((0, 5), (0, 6), (3, 6), (1, 5))))
    name = "names in touches all that its slowdown depends on"
    assert failed(check_model(NetworkSharing(), case)) == {}
    problem = failed(check_model(OwnLinksOnly(), case))[name]
    assert f"run 0 went from {2000 / 850 - 1} to {2000 / 1050 - 1} while nothing changed on the owners (8, 9)" in problem


def test_impossible_slowdowns_and_moods_are_found_out() -> None:
    for slowdown in (-1.0, float("inf"), float("nan")):
        assert failed(check_model(Halfway(slow=slowdown)))
    assert "is deterministic" in failed(check_model(Moody()))
