"""Clock of a live platform, and the time of its next due pass."""

from __future__ import annotations

import time
from collections.abc import Callable

from poolwise.quantities import SECOND


class LiveClock:
    """A monotonic clock that counts ns since an epoch; later changes of the system clock do not affect it."""

    def __init__(
        self, epoch: int, *, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.epoch, self._steady = epoch, steady
        self._ahead = max(0, wall() - epoch) - steady()
        self.now = 0  # ns since the epoch, as of the last `tick`
        self.next_wakeup: int | None = None  # time at which the scheduler requested its next pass, None if it did not
        self._pass_at: int | None = None

    def tick(self) -> int:
        """Update and return `now`."""
        self.now = max(self.now, self._ahead + self._steady())
        return self.now

    def request_pass(self, after: int) -> None:
        """Request a pass after a number of ns; the earliest request counts."""
        at = self.now + after
        self._pass_at = at if self._pass_at is None else min(self._pass_at, at)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the next pass is due, None if none is."""
        due = min((at for at in (self.next_wakeup, self._pass_at) if at is not None), default=None)
        return None if due is None else max(0.0, (due - self.now) / SECOND)

    def pop_due(self) -> bool:
        """Return whether a pass is due, and clear the due requests."""
        wake_due = self.next_wakeup is not None and self.next_wakeup <= self.now
        pass_due = self._pass_at is not None and self._pass_at <= self.now
        self.next_wakeup = None if wake_due else self.next_wakeup
        self._pass_at = None if pass_due else self._pass_at
        return wake_due or pass_due
