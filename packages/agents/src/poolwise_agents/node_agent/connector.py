"""Attaches and detaches the devices of claims; each step is idempotent and recorded before it runs.

    nothing -> attaching -> attached -> prepared -> detaching -> nothing
                   |            (commands)   ^  (CDI file)
                   +-> detaching -> failed --+ on the next request

After a crash, the next process finds the interrupted step in the record and repeats it; commands must therefore be idempotent.
A failed attachment is detached before it is recorded as failed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec.structs import replace

from poolwise.errors import InputError, PoolwiseError
from poolwise_agents.node_agent.cdi import CdiFolder
from poolwise_agents.node_agent.commands import CommandError
from poolwise_agents.node_agent.records import Attachment, ClaimRecord, ClaimState, Records

Runner = Callable[[Sequence[str], float], Awaitable[str]]  # runs a command with a timeout (s); raises CommandError
_VERIFY_INTERVAL_S = 0.25  # interval between two runs of the verify command


class AttachError(PoolwiseError):
    """Devices of a claim could not be attached or detached."""


class Connector:
    """Prepares and unprepares claims. Calls for one claim are serialized; different claims run concurrently."""

    def __init__(self, records: Records, cdi: CdiFolder, run: Runner) -> None:
        self.records, self.cdi, self.run = records, cdi, run
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def attach(self, required: ClaimRecord) -> ClaimRecord:
        """Attach a claim's devices; the returned record is attached, prepared, or has a failure reason (already detached)."""
        async with self._locks[required.uid]:
            record = await self._settled(required)
            return (
                record
                if record is not None and record.state != ClaimState.ATTACHING
                else await self._attach(record or required)
            )

    async def prepare(self, required: ClaimRecord) -> ClaimRecord:
        """Attach devices if necessary and write the CDI file; an earlier failure is retried. Raises AttachError."""
        async with self._locks[required.uid]:
            record = await self._settled(required)
            if record is None or record.state in (ClaimState.ATTACHING, ClaimState.FAILED):
                record = await self._attach(required)
            if record.reason:
                raise AttachError(record.reason)
            try:
                self.cdi.write(record)
            except InputError as error:
                raise AttachError(str(error)) from error
            return self.records.save(replace(record, state=ClaimState.PREPARED))

    async def release(self, uid: str, *, prepared: bool = True) -> None:
        """Detach all devices of a claim on this node and delete its record, if any; raises AttachError.

        With `prepared=False`, a prepared claim is kept because its pod may be using it.
        """
        async with self._locks[uid]:
            record = self.records.get(uid)
            if record is not None and record.state == ClaimState.PREPARED and not prepared:
                return
            if record is not None:
                await self._undo(replace(record, reason=""))
            else:
                self.cdi.remove(uid)

    async def resume(self, record: ClaimRecord) -> ClaimRecord | None:
        """Verify a record after a restart: undo interrupted steps, attach lost devices again.

        A prepared claim always stays recorded, since its pod may be using it; raises AttachError if it cannot be restored.
        """
        async with self._locks[record.uid]:
            current = self.records.get(record.uid)
            if current is None or current.state == ClaimState.FAILED:
                return current
            if current.state in (ClaimState.ATTACHING, ClaimState.DETACHING):
                return await self._undo(current)
            for k, device in enumerate(current.devices):
                try:
                    await self._ensure_attached(device)
                except CommandError as error:
                    if current.state == ClaimState.PREPARED:
                        raise AttachError(f"{device.device}: {error}") from error
                    return await self._fail(current, k, str(error))
            if current.state == ClaimState.PREPARED:
                self.cdi.write(current)
            return current

    def remove_orphaned_files(self) -> Iterable[str]:
        """Remove CDI files without a record, left by a crash between two writes; returns the uids of their claims."""
        left = sorted(self.cdi.uids() - {record.uid for record in self.records})
        for uid in left:
            self.cdi.remove(uid)
        return left

    async def _settled(self, required: ClaimRecord) -> ClaimRecord | None:
        """Return the record of an allocation, after undoing interrupted steps and the record of an earlier allocation."""
        record = self.records.get(required.uid)
        if record is not None and not record.same_allocation(required):
            await self._undo(replace(record, reason=""))
        elif record is not None and record.state == ClaimState.DETACHING:
            await self._undo(record)
        return self.records.get(required.uid)

    async def _attach(self, required: ClaimRecord) -> ClaimRecord:
        record = self.records.save(replace(required, state=ClaimState.ATTACHING, reason="", failed=0))
        for k, device in enumerate(record.devices):
            try:
                if device.attach:
                    await self.run(device.attach, device.limit_s)
                await self._verify(device)
            except CommandError as error:
                return await self._fail(record, k, str(error))
        return self.records.save(replace(record, state=ClaimState.ATTACHED))

    async def _ensure_attached(self, device: Attachment) -> None:
        """Attach a device unless it is attached already."""
        if device.verify:
            try:
                await self.run(device.verify, device.limit_s)
                return
            except CommandError:
                pass  # attach the device below
        if device.attach:
            await self.run(device.attach, device.limit_s)
        await self._verify(device)

    async def _verify(self, device: Attachment) -> None:
        """Run the verify command until it succeeds or the time limit has passed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + device.limit_s
        while device.verify:
            try:
                await self.run(device.verify, max(deadline - loop.time(), _VERIFY_INTERVAL_S))
                return
            except CommandError:
                if loop.time() + _VERIFY_INTERVAL_S >= deadline:
                    raise
            await asyncio.sleep(_VERIFY_INTERVAL_S)

    async def _fail(self, record: ClaimRecord, failed: int, why: str) -> ClaimRecord:
        """Undo a failed attachment; the returned record has the reason, even if undoing failed and must be retried."""
        device = record.devices[failed]
        record = replace(record, reason=f"attaching {device.device} of {device.pool} failed: {why}", failed=failed)
        try:
            return await self._undo(record) or record
        except AttachError as error:
            return replace(record, state=ClaimState.DETACHING, reason=f"{record.reason}; {error}")

    async def _undo(self, record: ClaimRecord) -> ClaimRecord | None:
        """Detach all devices in reverse order, then delete the record, or mark it failed; raises AttachError."""
        self.records.save(replace(record, state=ClaimState.DETACHING))
        self.cdi.remove(record.uid)
        problems = []
        for device in reversed(record.devices):
            try:
                if device.detach:
                    await self.run(device.detach, device.limit_s)
            except CommandError as error:
                problems.append(f"detaching {device.device} of {device.pool} failed: {error}")
        if problems:
            raise AttachError("; ".join(problems))
        if record.reason:
            return self.records.save(replace(record, state=ClaimState.FAILED))
        self.records.remove(record.uid)
        return None
