"""Attaches and detaches what claims have; every step can be repeated, and is on record before it is taken.

    nothing -> attaching -> attached -> prepared -> detaching -> nothing
                   |            (commands)   ^  (CDI file)
                   +-> detaching -> failed --+ when it is asked for again

A process that ends anywhere finds on the record what it was about to do, and does it again: commands are such that doing them
twice is doing them once. What failed is undone before it is called failed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec.structs import replace

from poolwise.errors import InputError, PoolwiseError
from poolwise.live.node_agent.cdi import CdiFolder
from poolwise.live.node_agent.commands import CommandError
from poolwise.live.node_agent.records import Attachment, ClaimRecord, ClaimState, Records

Runner = Callable[[Sequence[str], float], Awaitable[str]]
"""Runs a command within seconds; raises CommandError."""
_PAUSE = 0.25
"""Seconds between two looks whether a device is there."""


class AttachError(PoolwiseError):
    """Devices of a claim could not be attached, or detached."""


class Connector:
    """Takes claims from nothing to prepared and back. Calls for one claim follow each other, those of others do not wait.

    Parameters
    ----------
    run
        Runs commands.
    """

    def __init__(self, records: Records, cdi: CdiFolder, run: Runner) -> None:
        self.records, self.cdi, self.run = records, cdi, run
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def attach(self, wanted: ClaimRecord) -> ClaimRecord:
        """Attach a claim's devices; the record returned is attached, prepared, or says why it failed (already undone)."""
        async with self._locks[wanted.uid]:
            found = await self._settled(wanted)
            return found if found is not None and found.state != ClaimState.ATTACHING else await self._attach(found or wanted)

    async def prepare(self, wanted: ClaimRecord) -> ClaimRecord:
        """Attach what is not attached and write the CDI file; what failed before is tried again. Raises AttachError."""
        async with self._locks[wanted.uid]:
            found = await self._settled(wanted)
            if found is None or found.state in (ClaimState.ATTACHING, ClaimState.FAILED):
                found = await self._attach(wanted)
            if found.reason:
                raise AttachError(found.reason)
            try:
                self.cdi.write(found)
            except InputError as error:
                raise AttachError(str(error)) from error
            return self.records.save(replace(found, state=ClaimState.PREPARED))

    async def release(self, uid: str, *, prepared: bool = True) -> None:
        """Detach all that a claim has here and forget it; nothing to do where there is nothing. Raises AttachError.

        Without `prepared`, what a pod may be at work with stays.
        """
        async with self._locks[uid]:
            found = self.records.get(uid)
            if found is not None and found.state == ClaimState.PREPARED and not prepared:
                return
            if found is not None:
                await self._undo(replace(found, reason=""))
            else:
                self.cdi.remove(uid)

    async def resume(self, record: ClaimRecord) -> ClaimRecord | None:
        """See that what is on record after a restart is so; what was begun is undone, what got lost is attached again.

        A prepared claim stays on record whatever comes of it, since its pod may be at work: raises AttachError for it.
        """
        async with self._locks[record.uid]:
            found = self.records.get(record.uid)
            if found is None or found.state == ClaimState.FAILED:
                return found
            if found.state in (ClaimState.ATTACHING, ClaimState.DETACHING):
                return await self._undo(found)
            for k, device in enumerate(found.devices):
                try:
                    await self._see(device)
                except CommandError as error:
                    if found.state == ClaimState.PREPARED:
                        raise AttachError(f"{device.device}: {error}") from error
                    return await self._fail(found, k, str(error))
            if found.state == ClaimState.PREPARED:
                self.cdi.write(found)
            return found

    def sweep(self) -> Iterable[str]:
        """Remove CDI files of claims that nothing is on record of, left by an end between two writes; their uids."""
        left = sorted(self.cdi.uids() - {record.uid for record in self.records})
        for uid in left:
            self.cdi.remove(uid)
        return left

    async def _settled(self, wanted: ClaimRecord) -> ClaimRecord | None:
        """What is on record of an allocation, after what was begun is undone, and what is on record of another one."""
        found = self.records.get(wanted.uid)
        if found is not None and not found.same(wanted):
            await self._undo(replace(found, reason=""))
        elif found is not None and found.state == ClaimState.DETACHING:
            await self._undo(found)
        return self.records.get(wanted.uid)

    async def _attach(self, wanted: ClaimRecord) -> ClaimRecord:
        record = self.records.save(replace(wanted, state=ClaimState.ATTACHING, reason="", failed=0))
        for k, device in enumerate(record.devices):
            try:
                if device.attach:
                    await self.run(device.attach, device.limit_s)
                await self._verify(device)
            except CommandError as error:
                return await self._fail(record, k, str(error))
        return self.records.save(replace(record, state=ClaimState.ATTACHED))

    async def _see(self, device: Attachment) -> None:
        """See that a device is attached, and attach it if it is not."""
        if device.verify:
            try:
                await self.run(device.verify, device.limit_s)
                return
            except CommandError:
                pass  # it is attached again below
        if device.attach:
            await self.run(device.attach, device.limit_s)
        await self._verify(device)

    async def _verify(self, device: Attachment) -> None:
        """Look whether a device is there until it is, or its time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + device.limit_s
        while device.verify:
            try:
                await self.run(device.verify, max(until - loop.time(), _PAUSE))
                return
            except CommandError:
                if loop.time() + _PAUSE >= until:
                    raise
            await asyncio.sleep(_PAUSE)

    async def _fail(self, record: ClaimRecord, failed: int, why: str) -> ClaimRecord:
        """Undo a failed attach; the record returned says why, also where undoing it failed and has to be tried again."""
        device = record.devices[failed]
        record = replace(record, reason=f"attaching {device.device} of {device.pool} failed: {why}", failed=failed)
        try:
            return await self._undo(record) or record
        except AttachError as error:
            return replace(record, state=ClaimState.DETACHING, reason=f"{record.reason}; {error}")

    async def _undo(self, record: ClaimRecord) -> ClaimRecord | None:
        """Detach everything, the last first; then the record says that it failed, or is gone. Raises AttachError."""
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
