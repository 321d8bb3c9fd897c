"""Claims during device attachment: watch events may be older than the responses to writes."""

import asyncio
from typing import Any

import msgspec
import pytest

from poolwise.live.kubernetes.actions import ClusterActions
from poolwise.live.kubernetes.api_writer import ApiWriter
from poolwise.live.kubernetes.bind import Binder, Reservations
from poolwise.live.kubernetes.objects.claim import Allocation, ResourceClaim
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.start_waits import StartWaits
from poolwise.live.kubernetes.starts import BindFailed, Bound, ClaimWrite, PodStart, StartFailed
from tests.helpers.waiting import longest_s, run_other_tasks
from tests.live.kubernetes import objects as make
from tests.live_kubernetes.test_recovery import pending_pod

CONDITION = "x.io/up"
RESULT = {"request": "d", "driver": "gpu", "pool": "p", "device": "g0", "bindingConditions": [CONDITION]}
ALLOCATION = {"devices": {"results": [RESULT]}, "allocationTimestamp": "2026-11-22T12:00:00Z"}


def claim(version: int, **status: Any) -> ResourceClaim:
    manifest = make.claim("c", make.exactly("gpu"))
    manifest["metadata"] |= {"uid": "u", "resourceVersion": str(version)}
    return msgspec.convert({**manifest, "status": status}, ResourceClaim)


def attached() -> dict[str, Any]:
    device_status = {"driver": "gpu", "pool": "p", "device": "g0", "conditions": [{"type": CONDITION, "status": "True"}]}
    return {"allocation": ALLOCATION, "devices": [device_status]}


class LateWatchWriter(ApiWriter):
    """A writer whose writes return the allocated claim, while watch events are late."""

    async def patch(self, path: str, body: Any, urgency: int, *more: Any, **options: Any) -> bytes:
        return msgspec.json.encode(claim(9, allocation=ALLOCATION))


def test_late_watch_event_does_not_revert_an_allocation() -> None:
    async def scenario() -> ResourceClaim:
        reservations = Reservations(LateWatchWriter(None, lambda: None), attach_timeout=2 * longest_s())
        reservations.observe(claim(7), False)
        write = ClaimWrite(claim(7), msgspec.convert(ALLOCATION, Allocation))
        start = PodStart(msgspec.convert(pending_pod(make.pod("p"), "p"), Pod), "n0", (write,))
        ready = await reservations.reserve(start, write)
        waiting = asyncio.ensure_future(reservations.wait_attached(ready, StartWaits()))
        await run_other_tasks()
        reservations.observe(claim(8), False)  # with its finalizer, before its allocation
        await run_other_tasks()
        assert not waiting.done()
        reservations.observe(claim(10, **attached()), False)
        await asyncio.wait_for(waiting, longest_s())
        return ready

    assert asyncio.run(scenario()).status.allocation is not None


def test_claim_deleted_before_a_relist_is_not_awaited() -> None:
    async def scenario() -> None:
        reservations = Reservations(LateWatchWriter(None, lambda: None), attach_timeout=2 * longest_s())
        held = claim(9, allocation=ALLOCATION)
        reservations.observe(held, False)
        waiting = asyncio.ensure_future(reservations.wait_attached(held, StartWaits()))
        await run_other_tasks()
        reservations.retain(frozenset({"default/another"}))
        with pytest.raises(StartFailed, match="was deleted"):
            await asyncio.wait_for(waiting, longest_s())

    asyncio.run(scenario())


class AllocatedWriter(LateWatchWriter):
    """A writer that finds the claim allocated."""

    async def read_claim(self, claim_: ResourceClaim) -> ResourceClaim:
        return claim(9, allocation=ALLOCATION)


def test_abandoned_start_stops_waiting_for_its_devices() -> None:
    async def scenario() -> list[Bound | BindFailed]:
        outcomes: list[Bound | BindFailed] = []
        writer = AllocatedWriter(None, lambda: None)
        reservations = Reservations(writer, attach_timeout=2 * longest_s())
        reservations.observe(claim(9, allocation=ALLOCATION), False)
        binder = Binder(writer, reservations, outcomes.append)
        write = ClaimWrite(claim(7), msgspec.convert(ALLOCATION, Allocation))
        pods = [PodStart(msgspec.convert(pending_pod(make.pod(name), name), Pod), "n0", (write,)) for name in "pq"]
        binding = asyncio.ensure_future(binder.start(3, pods))
        await run_other_tasks()
        binder.abandon(4, "another run")
        await run_other_tasks()
        assert not outcomes
        binder.abandon(3, "device g0 is no longer published")
        await asyncio.wait_for(binding, longest_s())
        return outcomes

    assert asyncio.run(scenario()) == [BindFailed(3, "device g0 is no longer published", lost=True)]


class QueuedClient:
    """A client that queues coroutines until a test runs them."""

    def __init__(self, fails: bool) -> None:
        self.queued: list[Any] = []
        self.released: list[str] = []
        self.reservations, self.fails = self, fails

    def submit(self, coroutine: Any) -> None:
        self.queued.append(coroutine)

    async def release(self, claim: ResourceClaim, consumer: str) -> None:
        self.released.append(consumer)
        if self.fails:
            raise StartFailed("the API server is unreachable")


@pytest.mark.parametrize("fails", [False, True])
def test_reservation_is_not_released_twice_concurrently(fails: bool) -> None:
    client: Any = QueuedClient(fails)
    actions = ClusterActions(client, "poolwise")
    for consumer in ("p", "p", "q"):
        actions.release_claim(claim(1), consumer)
    for coroutine in client.queued:
        asyncio.run(coroutine)
    assert client.released == ["p", "q"]
    actions.release_claim(claim(2), "p")
    asyncio.run(client.queued[-1])
    assert client.released == ["p", "q", "p"]


class SharedWriter(ApiWriter):
    """A writer for a claim that another process has reserved for the pod `p`; it records its writes."""

    def __init__(self, device: str, node: str) -> None:
        super().__init__(None, lambda: None)
        self.device, self.node, self.writes = device, node, list[Any]()

    async def read_claim(self, claim_: ResourceClaim) -> ResourceClaim:
        allocation = {"devices": {"results": [{**RESULT, "device": self.device}]}}
        return claim(9, allocation=allocation, reservedFor=[{"resource": "pods", "name": "p", "uid": "p"}])

    async def read_pod(self, pod: Pod) -> Pod:
        manifest = pending_pod(make.pod("p"), "p")
        manifest["spec"]["nodeName"] = self.node
        return msgspec.convert(manifest, Pod)

    async def patch(self, path: str, body: Any, urgency: int, *more: Any, **options: Any) -> bytes:
        self.writes.append(body["status"])
        return b"{}"


@pytest.mark.parametrize(
    ("device", "node", "released"),
    [("g0", "", True), ("g1", "", False), ("g0", "n1", False)],
    ids=["own devices", "devices of another process", "pod bound by another process"],
)
def test_failed_start_releases_only_its_own_devices_of_unbound_pods(device: str, node: str, released: bool) -> None:
    writer = SharedWriter(device, node)
    allocation = msgspec.convert(ALLOCATION, Allocation)
    asyncio.run(Reservations(writer).release(claim(7), "p", allocation))
    assert writer.writes == ([{"reservedFor": None, "allocation": None, "devices": None}] if released else [])
