"""Node agent: watches the claims of its node, attaches devices, reports conditions, and answers the kubelet."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from poolwise.errors import InputError, PoolwiseError
from poolwise.live.kubernetes.informer import Synced, WatchEvent
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.logs import log_event
from poolwise.live.metrics import SHORT
from poolwise_agents.node_agent.cluster import AgentCluster
from poolwise_agents.node_agent.conditions import (
    DeviceConditions,
    claim_failure_conditions,
    is_reported,
    record_conditions,
    reported_conditions,
    status_devices,
)
from poolwise_agents.node_agent.config import NodeAgentFile
from poolwise_agents.node_agent.connector import Connector
from poolwise_agents.node_agent.records import ClaimRecord, ClaimState
from poolwise_agents.node_agent.required_attachments import allocated_devices, published_devices, required_record
from poolwise_agents.node_agent.template import validate_value
from poolwise_agents.node_agent.work_queue import KeyedWorkQueue


class NodeAgentMetrics:
    """Metrics of one node agent, in their own registry."""

    def __init__(self) -> None:
        self.registry = at = CollectorRegistry()
        gauge, counter = partial(Gauge, registry=at), partial(Counter, registry=at)
        self._claims = gauge("poolwise_node_claims", "Claims with devices on this node, by state", ["state"])
        seconds = "Duration of operations on claims"
        self.seconds = Histogram("poolwise_node_work_seconds", seconds, ["work"], buckets=SHORT, registry=at)
        self.failures = counter("poolwise_node_failures", "Failures, by operation", ["work"])
        self.writes = counter("poolwise_node_slice_writes", "Slices written or deleted")
        self.registered = gauge("poolwise_node_registered", "1 once the kubelet has registered the plugin")
        self.link_load = gauge("poolwise_node_link_load_ratio", "Measured load of a link, 0 to 1", ["link"])
        self.link_bytes = gauge("poolwise_node_link_bytes_per_second", "Measured traffic of a link", ["link"])

    def update(self, records: Iterable[ClaimRecord]) -> None:
        """Count claims by state."""
        count = Tally(record.state for record in records)
        for state in ClaimState:
            self._claims.labels(state.value).set(count[state])


class NodeAgent:
    """Keeps the devices of this node's claims attached, and reports their conditions.

    Reconciliation depends only on the current claim and the saved record, never on the event that triggered it: events may be
    repeated, delayed or lost.
    """

    def __init__(self, file: NodeAgentFile, node: str, cluster: AgentCluster, connector: Connector) -> None:
        self.file, self.node, self.cluster, self.connector = file, node, cluster, connector
        self.metrics = NodeAgentMetrics()
        self.queue = KeyedWorkQueue(self._reconcile, self._log_retry)
        self.synced = False
        self._claims: dict[str, ResourceClaim] = {}  # uid -> a claim of this node
        self._unverified: set[str] = set()  # recorded claims that have not been verified since this process started

    def resume(self) -> None:
        """Queue the recorded claims and remove orphaned CDI files."""
        for uid in self.connector.remove_orphaned_files():
            log_event("orphaned_cdi_file_removed", logging.WARNING, claim=uid)
        for record in self.connector.records:
            log_event("claim_resumed", claim=record.name, namespace=record.namespace, state=record.state.value)
            self._unverified.add(record.uid)
            self.queue.enqueue(record.uid)

    def handle_event(self, event: WatchEvent[ResourceClaim] | Synced) -> None:
        """Update a claim and queue it for reconciliation."""
        if isinstance(event, Synced):
            self.synced = True
            gone = [uid for uid, claim in self._claims.items() if claim.metadata.key not in event.keys]
            for uid in gone:
                del self._claims[uid]
            for uid in {*gone, *(record.uid for record in self.connector.records)}:
                self.queue.enqueue(uid)
            return
        claim = event.item
        uid = claim.metadata.uid
        is_local = not event.deleted and bool(allocated_devices(claim, self.file.driver)) and claim.pinned_node == self.node
        if is_local:
            self._claims[uid] = claim
        elif uid in self._claims:
            del self._claims[uid]
        if is_local or self.connector.records.get(uid) is not None:
            self.queue.enqueue(uid)

    async def prepare(self, namespace: str, name: str, uid: str) -> tuple[ClaimRecord, list[list[str]]]:
        """Prepare a claim's devices and return the record with the CDI names of each device; raises PoolwiseError."""
        with self._timed("prepare"):
            validate_value("claim.uid", uid, {})
            validate_value("claim.namespace", namespace, {})
            validate_value("claim.name", name, {})
            claim = await self.cluster.claim(namespace, name)
            if claim is None or claim.metadata.uid != uid:
                raise InputError("the claim no longer exists", remedy="check whether its pod still exists")
            # the work continues if the kubelet times out; the kubelet then repeats its request
            record = await asyncio.shield(asyncio.ensure_future(self._prepare(claim)))
        log_event("claim_prepared", claim=name, namespace=namespace, devices=[device.device for device in record.devices])
        return record, self.connector.cdi.ids(record)

    async def unprepare(self, uid: str) -> None:
        """Release a claim's devices, if it has any on this node; raises PoolwiseError."""
        with self._timed("release"):
            validate_value("claim.uid", uid, {})
            await asyncio.shield(asyncio.ensure_future(self.connector.release(uid)))
        log_event("claim_released", claim=uid)

    async def _prepare(self, claim: ResourceClaim) -> ClaimRecord:
        record = self.connector.records.get(claim.metadata.uid)
        current = (
            record is not None and self._matches(claim, record) and record.state in (ClaimState.ATTACHED, ClaimState.PREPARED)
        )
        return await self.connector.prepare(record if record is not None and current else await self._required(claim))

    async def _required(self, claim: ResourceClaim) -> ClaimRecord:
        slices = await self.cluster.slices(self.file.driver)
        return required_record(claim, self.node, self.file, published_devices(slices, self.file.driver))

    def _matches(self, claim: ResourceClaim, record: ClaimRecord) -> bool:
        """Return whether a record describes the current allocation of a claim."""
        allocation, devices = claim.status.allocation, allocated_devices(claim, self.file.driver)
        timestamp = allocation.allocation_timestamp or "" if allocation is not None else None
        recorded = [device.identity for device in record.devices]
        current = [(allocated.request, allocated.pool, allocated.device, allocated.share_id or "") for allocated in devices]
        return record.allocated == timestamp and recorded == current

    async def _reconcile(self, uid: str) -> None:
        records = self.connector.records
        if uid in self._unverified and (record := records.get(uid)) is not None:
            await self.connector.resume(record)
        self._unverified.discard(uid)
        self.metrics.update(records)
        if not self.synced:
            return  # before the first sync, a missing claim may still exist
        record, claim = records.get(uid), self._claims.get(uid)
        if record is not None and (claim is None or not self._matches(claim, record)):
            with self._timed("release"):
                await self.connector.release(uid, prepared=False)  # the kubelet releases prepared claims
            record = None
        if claim is None:
            return
        waited = any(device.binding_conditions for device in allocated_devices(claim, self.file.driver))
        if waited and claim.status.reserved_for:
            await self._attach_and_report(claim, record)
        record = records.get(uid)
        self.metrics.update(records)
        if record is not None and record.state == ClaimState.DETACHING:
            await self.connector.resume(record)

    async def _attach_and_report(self, claim: ResourceClaim, record: ClaimRecord | None) -> None:
        """Attach the devices that a pod waits for, unless the result has already been reported, and report the result."""
        conditions: DeviceConditions | None
        driver = self.file.driver
        if (record is None or record.state == ClaimState.ATTACHING) and not any(reported_conditions(claim, driver).values()):
            try:
                required = await self._required(claim)
            except InputError as error:
                conditions = claim_failure_conditions(claim, driver, str(error))
                self.metrics.failures.labels("attach").inc()
            else:
                with self._timed("attach"):
                    record = await self.connector.attach(required)
                conditions = record_conditions(record)
                if record.reason:
                    self.metrics.failures.labels("attach").inc()
        else:
            conditions = None if record is None else record_conditions(record)
        if conditions is not None and not is_reported(claim, driver, conditions):
            await self._report(claim, conditions)

    async def _report(self, cached: ResourceClaim, conditions: DeviceConditions) -> None:
        """Report conditions if the claim still has the cached allocation, since the informer cache may be seconds behind."""
        meta, driver = cached.metadata, self.file.driver
        now = await self.cluster.claim(meta.namespace, meta.name)
        if now is None or now.metadata.uid != meta.uid or now.status.allocation != cached.status.allocation:
            return  # the change triggers another reconciliation
        await self.cluster.report(now, status_devices(conditions, driver))
        log_event("claim_reported", claim=meta.name, namespace=meta.namespace, devices=[*conditions.values()])

    @contextmanager
    def _timed(self, work: str) -> Iterator[None]:
        """Measure an operation, count and log its failure, and update the metrics of records."""
        try:
            with self.metrics.seconds.labels(work).time():
                yield
        except PoolwiseError as error:
            self.metrics.failures.labels(work).inc()
            log_event(f"{work}_failed", logging.WARNING, why=str(error))
            raise
        finally:
            self.metrics.update(self.connector.records)

    def _log_retry(self, uid: str, error: PoolwiseError) -> None:
        self.metrics.failures.labels("settle").inc()
        log_event("claim_retry", logging.WARNING, claim=uid, why=str(error))
