"""What is known of a claim while its devices are attached: watches tell late what writes have answered."""

import asyncio
from typing import Any

import msgspec
import pytest

from poolwise.live.kubernetes.actions import ClusterActions
from poolwise.live.kubernetes.api_writer import ApiWriter
from poolwise.live.kubernetes.claim_reservation import Reservations
from poolwise.live.kubernetes.objects import Allocation, Pod, ResourceClaim
from poolwise.live.kubernetes.starts import ClaimWrite, PodStart, StartFailed
from tests.live.kubernetes import objects as make
from tests.live_kubernetes.test_recovery import known

CONDITION = "x.io/up"
RESULT = {"request": "d", "driver": "gpu", "pool": "p", "device": "g0", "bindingConditions": [CONDITION]}
ALLOCATION = {"devices": {"results": [RESULT]}, "allocationTimestamp": "2026-11-22T12:00:00Z"}


def claim(version: int, **status: Any) -> ResourceClaim:
    one = make.claim("c", make.exactly("gpu"))
    one["metadata"] |= {"uid": "u", "resourceVersion": str(version)}
    return msgspec.convert({**one, "status": status}, ResourceClaim)


def attached() -> dict[str, Any]:
    said = {"driver": "gpu", "pool": "p", "device": "g0", "conditions": [{"type": CONDITION, "status": "True"}]}
    return {"allocation": ALLOCATION, "devices": [said]}


class Answers(ApiWriter):
    """Each write is answered by the claim with devices, and the watch is late."""

    async def patch(self, path: str, body: Any, urgency: int, *more: Any, **options: Any) -> bytes:
        return msgspec.json.encode(claim(9, allocation=ALLOCATION))


def test_a_watch_that_is_late_does_not_take_devices_back() -> None:
    async def go() -> ResourceClaim:
        reservations = Reservations(Answers(None, lambda: None), attach_patience=5.0)
        reservations.saw(claim(7), False)
        write = ClaimWrite(claim(7), msgspec.convert(ALLOCATION, Allocation))
        start = PodStart(msgspec.convert(known(make.pod("p"), "p"), Pod), "n0", (write,))
        ready = await reservations.reserve(start, write)
        waiting = asyncio.ensure_future(reservations.attached(ready))
        await asyncio.sleep(0.01)
        reservations.saw(claim(8), False)  # with its finalizer, before it had devices
        await asyncio.sleep(0.01)
        assert not waiting.done()
        reservations.saw(claim(10, **attached()), False)
        await asyncio.wait_for(waiting, 1.0)
        return ready

    assert asyncio.run(go()).status.allocation is not None


def test_a_claim_that_went_while_nobody_watched_is_not_awaited() -> None:
    async def go() -> None:
        reservations = Reservations(Answers(None, lambda: None), attach_patience=5.0)
        held = claim(9, allocation=ALLOCATION)
        reservations.saw(held, False)
        waiting = asyncio.ensure_future(reservations.attached(held))
        await asyncio.sleep(0.01)
        reservations.keep(frozenset({"default/another"}))
        with pytest.raises(StartFailed, match="was deleted"):
            await asyncio.wait_for(waiting, 1.0)

    asyncio.run(go())


class OneLink:
    """Does what is to be done when a test says so."""

    def __init__(self, fails: bool) -> None:
        self.todo: list[Any] = []
        self.released: list[str] = []
        self.reservations, self.fails = self, fails

    def do(self, work: Any) -> None:
        self.todo.append(work)

    async def release(self, claim: ResourceClaim, consumer: str) -> None:
        self.released.append(consumer)
        if self.fails:
            raise StartFailed("the API server is gone")


@pytest.mark.parametrize("fails", [False, True])
def test_a_reservation_is_not_ended_twice_at_a_time(fails: bool) -> None:
    link: Any = OneLink(fails)
    writes = ClusterActions(link, "poolwise")
    for consumer in ("p", "p", "q"):
        writes.release_claim(claim(1), consumer)
    for work in link.todo:
        asyncio.run(work)
    assert link.released == ["p", "q"]
    writes.release_claim(claim(2), "p")
    asyncio.run(link.todo[-1])
    assert link.released == ["p", "q", "p"]
