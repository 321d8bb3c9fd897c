"""Work by key: one at a time for each key, again where it failed, later each time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from poolwise.errors import PoolwiseError

FIRST, LONGEST_DELAY = 0.5, 60.0
"""Seconds until work that failed is tried again: at first, and at most."""


class KeyedWorkQueue:
    """Does work for keys that are woken. A key that is woken while its work is done, or put off, has it done once more.

    Parameters
    ----------
    work
        Does what a key needs. An error of Poolwise's is told, and the work is done again later.
    failed
        Is told of it.
    """

    def __init__(self, work: Callable[[str], Awaitable[None]], failed: Callable[[str, PoolwiseError], None]) -> None:
        self._work, self._failed = work, failed
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, asyncio.Event] = {}  # set where a key was woken while its work is done, or put off
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(self, key: str) -> None:
        """Have a key's work done, at once."""
        if key in self._tasks:
            self._again[key].set()
        else:
            self._again[key] = asyncio.Event()
            self._tasks[key] = task = asyncio.create_task(self._run(key))
            task.add_done_callback(lambda done: self._done(key, done))

    async def watch(self) -> None:
        """Wait for ever; raises what work raised that is no error of Poolwise's."""
        await self._broken

    async def stop(self) -> None:
        """Cancel all work."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._broken.cancel()

    async def _run(self, key: str) -> None:
        delay = FIRST
        while True:
            again = self._again[key]
            again.clear()
            try:
                await self._work(key)
            except PoolwiseError as error:
                self._failed(key, error)
                with suppress(TimeoutError):
                    await asyncio.wait_for(again.wait(), delay)
                delay = min(2 * delay, LONGEST_DELAY)
            else:
                if not again.is_set():
                    return

    def _done(self, key: str, task: asyncio.Task[None]) -> None:
        del self._tasks[key]
        woken = self._again.pop(key).is_set()
        if not task.cancelled() and (error := task.exception()) is not None and not self._broken.done():
            self._broken.set_exception(error)
        elif woken and not task.cancelled():
            self.wake(key)
