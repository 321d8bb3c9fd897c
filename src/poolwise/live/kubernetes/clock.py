"""The time of a live platform, and when a pass is due though nothing happens."""

from __future__ import annotations

import time
from collections.abc import Callable

from poolwise.units import SECOND


class LiveClock:
    """Ns since an epoch, which only grow: a system clock that is set does not matter once this one runs.

    Parameters
    ----------
    epoch
        Ns since 1970.
    wall, steady
        Ns since 1970, and ns of a clock that nobody sets.

    Attributes
    ----------
    now : ns since the epoch, as of the last `tick`
    wake_at : when the scheduler wants to be asked again, None where it does not
    """

    def __init__(
        self, epoch: int, *, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.epoch, self._steady = epoch, steady
        self._ahead = max(0, wall() - epoch) - steady()
        self.now = 0
        self.wake_at: int | None = None
        self._retry_at: int | None = None

    def tick(self) -> int:
        """Look at the time; returns `now`."""
        self.now = max(self.now, self._ahead + self._steady())
        return self.now

    def retry(self, after: int) -> None:
        """Want a pass in so many ns, or earlier where another one is wanted."""
        at = self.now + after
        self._retry_at = at if self._retry_at is None else min(self._retry_at, at)

    @property
    def left(self) -> float | None:
        """Seconds until a pass is due, None where none is."""
        due = min((at for at in (self.wake_at, self._retry_at) if at is not None), default=None)
        return None if due is None else max(0.0, (due - self.now) / SECOND)

    def ring(self) -> bool:
        """Whether a pass is due by now; it is wanted no longer then."""
        woken = self.wake_at is not None and self.wake_at <= self.now
        tried = self._retry_at is not None and self._retry_at <= self.now
        self.wake_at = None if woken else self.wake_at
        self._retry_at = None if tried else self._retry_at
        return woken or tried
