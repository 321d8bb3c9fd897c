"""Queue of events on a simulated clock: waiting for an event advances the clock instead of taking time."""

import queue
from collections import deque
from collections.abc import Callable
from typing import Any


class TimedQueue:
    """A queue whose `get` advances the clock to the next scheduled action, or to its timeout.

    Attributes
    ----------
    now : seconds on the simulated clock
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._items: deque[Any] = deque()
        self._scheduled: deque[tuple[float, Callable[[], object]]] = deque()

    def schedule(self, at: float, action: Callable[[], object]) -> None:
        """Run an action at a time (s), no earlier than the actions scheduled before."""
        self._scheduled.append((at, action))

    def put(self, item: Any) -> None:
        """Add an item."""
        self._items.append(item)

    def get(self, timeout: float | None = None) -> Any:
        """Return the next item; raise queue.Empty once the timeout (s) has passed on the clock."""
        end = float("inf") if timeout is None else self.now + timeout
        while True:
            while self._scheduled and self._scheduled[0][0] <= self.now:
                self._scheduled.popleft()[1]()
            if self._items:
                return self._items.popleft()
            if not self._scheduled or self._scheduled[0][0] > end:
                assert end < float("inf"), "waits for an event that never comes"
                self.now = end
                raise queue.Empty
            self.now = self._scheduled[0][0]

    def empty(self) -> bool:
        """Return whether no item can be taken without waiting."""
        return not self._items

    def qsize(self) -> int:
        """Return the number of items that can be taken without waiting."""
        return len(self._items)
