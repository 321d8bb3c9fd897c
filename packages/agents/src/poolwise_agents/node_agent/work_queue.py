"""Work queue by key: work for one key is serialized, and retried with increasing delay after errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from poolwise.errors import PoolwiseError

INITIAL_DELAY, MAX_DELAY = 0.5, 60.0  # delay before failed work is retried (s)


class KeyedWorkQueue:
    """Runs work for queued keys; a key that is queued while its work runs or is delayed runs again.

    After a PoolwiseError, `failed` is called with the error, and the work is retried.
    """

    def __init__(self, work: Callable[[str], Awaitable[None]], failed: Callable[[str, PoolwiseError], None]) -> None:
        self._work, self._failed = work, failed
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._requeued: dict[str, asyncio.Event] = {}  # set if a key was queued while its work runs or is delayed
        self._error: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def enqueue(self, key: str) -> None:
        """Queue a key; its work runs without delay."""
        if key in self._tasks:
            self._requeued[key].set()
        else:
            self._requeued[key] = asyncio.Event()
            self._tasks[key] = task = asyncio.create_task(self._run(key))
            task.add_done_callback(lambda done: self._done(key, done))

    async def wait_for_error(self) -> None:
        """Wait forever, but raise any unexpected error of the work."""
        await self._error

    async def stop(self) -> None:
        """Cancel all work."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._error.cancel()

    async def _run(self, key: str) -> None:
        delay = INITIAL_DELAY
        while True:
            requeued = self._requeued[key]
            requeued.clear()
            try:
                await self._work(key)
            except PoolwiseError as error:
                self._failed(key, error)
                with suppress(TimeoutError):
                    await asyncio.wait_for(requeued.wait(), delay)
                delay = min(2 * delay, MAX_DELAY)
            else:
                if not requeued.is_set():
                    return

    def _done(self, key: str, task: asyncio.Task[None]) -> None:
        del self._tasks[key]
        requeued = self._requeued.pop(key).is_set()
        if not task.cancelled() and (error := task.exception()) is not None and not self._error.done():
            self._error.set_exception(error)
        elif requeued and not task.cancelled():
            self.enqueue(key)
