"""Waits of a start for devices and volumes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from poolwise.live.kubernetes.client import ApiError
from poolwise.live.kubernetes.starts import StartFailed


class StartWaits:
    """Waits for the devices and volumes of a start: the first failure of any of its pods ends all of them."""

    def __init__(self) -> None:
        self.failure: StartFailed | ApiError | None = None
        self._events: set[asyncio.Event] = set()

    def fail(self, failure: StartFailed | ApiError) -> None:
        """End all waits; the first failure counts."""
        if self.failure is None:
            self.failure = failure
            for event in self._events:
                event.set()

    def check(self) -> None:
        """Raise the failure, if there is one."""
        if self.failure is not None:
            raise self.failure

    @contextmanager
    def wait(self) -> Iterator[asyncio.Event]:
        """Yield an event that a failure sets."""
        event = asyncio.Event()
        self._events.add(event)
        try:
            yield event
        finally:
            self._events.discard(event)
