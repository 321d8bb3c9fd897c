"""The agent: follows claims of its node, attaches and reports, answers the kubelet, publishes slices."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from poolwise.errors import InputError, PoolwiseError
from poolwise.live.kubernetes.informer import Synced, WatchEvent
from poolwise.live.kubernetes.objects import ResourceClaim
from poolwise.live.logs import log_event
from poolwise.live.node_agent.cluster import AgentCluster
from poolwise.live.node_agent.conditions import (
    DeviceConditions,
    content_of,
    holds,
    refused_claim,
    said_of_devices,
    verdict,
    waits_for,
)
from poolwise.live.node_agent.config import NodeAgentFile
from poolwise.live.node_agent.connector import Connector
from poolwise.live.node_agent.metrics import NodeAgentMetrics
from poolwise.live.node_agent.records import ClaimRecord, ClaimState
from poolwise.live.node_agent.required_attachments import allocated, pinned_to, published, record_of
from poolwise.live.node_agent.template import checked
from poolwise.live.node_agent.work_queue import KeyedWorkQueue


class NodeAgent:
    """Keeps the devices of this node's claims attached, and says so.

    What it does for a claim follows from the claim as it is and from what is on record, never from which message came: a
    message may come twice, late or never.

    Parameters
    ----------
    node
        The node that it works for.
    """

    def __init__(self, file: NodeAgentFile, node: str, cluster: AgentCluster, connector: Connector) -> None:
        self.file, self.node, self.cluster, self.connector = file, node, cluster, connector
        self.metrics = NodeAgentMetrics()
        self.work = KeyedWorkQueue(self._settle, self._failed)
        self.synced = False
        self._claims: dict[str, ResourceClaim] = {}  # uid -> a claim of this node
        self._left: set[str] = set()  # claims on record that were not looked at since this process began

    def resume(self) -> None:
        """Take up what is on record."""
        for uid in self.connector.sweep():
            log_event("removed a CDI file that nothing is on record of", logging.WARNING, claim=uid)
        for record in self.connector.records:
            log_event("on record", claim=record.name, namespace=record.namespace, state=record.state.value)
            self._left.add(record.uid)
            self.work.wake(record.uid)

    def handle_event(self, seen: WatchEvent[ResourceClaim] | Synced) -> None:
        """Take note of a claim as it is now."""
        if isinstance(seen, Synced):
            self.synced = True
            gone = [uid for uid, claim in self._claims.items() if claim.metadata.key not in seen.keys]
            for uid in gone:
                del self._claims[uid]
            for uid in {*gone, *(record.uid for record in self.connector.records)}:
                self.work.wake(uid)
            return
        claim = seen.item
        uid = claim.metadata.uid
        ours = not seen.deleted and bool(allocated(claim, self.file.driver)) and pinned_to(claim) == self.node
        if ours:
            self._claims[uid] = claim
        elif uid in self._claims:
            del self._claims[uid]
        if ours or self.connector.records.get(uid) is not None:
            self.work.wake(uid)

    async def prepare(self, namespace: str, name: str, uid: str) -> tuple[ClaimRecord, list[list[str]]]:
        """Make a claim's devices usable here; the CDI names of each. Raises PoolwiseError."""
        with self._timed("prepare"):
            checked("claim.uid", uid, {})
            checked("claim.namespace", namespace, {})
            checked("claim.name", name, {})
            claim = await self.cluster.claim(namespace, name)
            if claim is None or claim.metadata.uid != uid:
                raise InputError("there is no such claim any more", remedy="the kubelet asks for those of pods that still are")
            # a prepare that the kubelet gives up on goes on: it is asked for again
            record = await asyncio.shield(asyncio.ensure_future(self._prepare(claim)))
        log_event("prepared", claim=name, namespace=namespace, devices=[device.device for device in record.devices])
        return record, self.connector.cdi.ids(record)

    async def unprepare(self, uid: str) -> None:
        """Take a claim's devices back; nothing to do where it has none here. Raises PoolwiseError."""
        with self._timed("release"):
            checked("claim.uid", uid, {})
            await asyncio.shield(asyncio.ensure_future(self.connector.release(uid)))
        log_event("released", claim=uid)

    async def _prepare(self, claim: ResourceClaim) -> ClaimRecord:
        found = self.connector.records.get(claim.metadata.uid)
        kept = found is not None and self._about(claim, found) and found.state in (ClaimState.ATTACHED, ClaimState.PREPARED)
        return await self.connector.prepare(found if found is not None and kept else await self._wanted(claim))

    async def _wanted(self, claim: ResourceClaim) -> ClaimRecord:
        slices = await self.cluster.slices(self.file.driver)
        return record_of(claim, self.node, self.file, published(slices, self.file.driver))

    def _about(self, claim: ResourceClaim, record: ClaimRecord) -> bool:
        """Whether a record is about what a claim has now."""
        allocation, has = claim.status.allocation, allocated(claim, self.file.driver)
        when = allocation.allocation_timestamp or "" if allocation is not None else None
        mine = [device.identity for device in record.devices]
        return record.allocated == when and mine == [(one.request, one.pool, one.device, one.share_id or "") for one in has]

    async def _settle(self, uid: str) -> None:
        """Do what a claim needs now: attach, report, or release what it no longer has."""
        records = self.connector.records
        if uid in self._left and (record := records.get(uid)) is not None:
            await self.connector.resume(record)
        self._left.discard(uid)
        self.metrics.update(records)
        if not self.synced:
            return  # a claim that was not seen yet is not one that is gone
        record, claim = records.get(uid), self._claims.get(uid)
        if record is not None and (claim is None or not self._about(claim, record)):
            with self._timed("release"):
                await self.connector.release(uid, prepared=False)  # of that the kubelet says when it is over
            record = None
        if claim is None:
            return
        if waits_for(claim, self.file.driver) and claim.status.reserved_for:
            await self._answer(claim, record)
        record = records.get(uid)
        self.metrics.update(records)
        if record is not None and record.state == ClaimState.DETACHING:
            await self.connector.resume(record)

    async def _answer(self, claim: ResourceClaim, record: ClaimRecord | None) -> None:
        """Attach what a pod waits for, unless it was said already how that went, and say how it went."""
        said: DeviceConditions | None
        driver = self.file.driver
        if (record is None or record.state == ClaimState.ATTACHING) and not any(said_of_devices(claim, driver).values()):
            try:
                wanted = await self._wanted(claim)
            except InputError as error:
                said = refused_claim(claim, driver, str(error))
                self.metrics.failures.labels("attach").inc()
            else:
                with self._timed("attach"):
                    record = await self.connector.attach(wanted)
                said = verdict(record)
                if record.reason:
                    self.metrics.failures.labels("attach").inc()
        else:
            said = None if record is None else verdict(record)
        if said is not None and not holds(claim, driver, said):
            await self._report(claim, said)

    async def _report(self, seen: ResourceClaim, said: DeviceConditions) -> None:
        """Report on a claim as it is now, if it still has what was seen: what is followed may be behind by seconds."""
        meta, driver = seen.metadata, self.file.driver
        now = await self.cluster.claim(meta.namespace, meta.name)
        if now is None or now.metadata.uid != meta.uid or now.status.allocation != seen.status.allocation:
            return  # the change is told of, and answered then
        await self.cluster.report(now, content_of(said, driver))
        log_event("reported", claim=meta.name, namespace=meta.namespace, devices=[*said.values()])

    @contextmanager
    def _timed(self, work: str) -> Iterator[None]:
        """Measure work, count it where it fails, and show what is on record afterwards."""
        try:
            with self.metrics.seconds.labels(work).time():
                yield
        except PoolwiseError as error:
            self.metrics.failures.labels(work).inc()
            log_event(f"{work} failed", logging.WARNING, why=str(error))
            raise
        finally:
            self.metrics.update(self.connector.records)

    def _failed(self, uid: str, error: PoolwiseError) -> None:
        self.metrics.failures.labels("settle").inc()
        log_event("tried again later", logging.WARNING, claim=uid, why=str(error))
