"""Arguments of the kernel for list scheduling on shared nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from poolwise.engines.kernel_arrays import blank
from poolwise.kernels.shared_nodes.head_state import HeadArrays
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals
from poolwise.kernels.shared_nodes.state import (
    CounterArrays,
    NodeArrays,
    OutageArrays,
    ProfileSteps,
    SharedState,
    WindowArrays,
)


class SharedArrays(NamedTuple):
    """Arguments of the kernel `replay`."""

    state: SharedState
    ahead: NodeArrays | None
    empty: NodeArrays | None
    profile: ProfileSteps | None
    outages: OutageArrays | None
    windows: WindowArrays | None
    intervals: SharedIntervals | None
    heads: HeadArrays | None

    def with_state(self, **arrays: Any) -> SharedArrays:
        """Return the arguments with the arrays of the state replaced."""
        return self._replace(state=self.state._replace(**arrays))

    @property
    def counters(self) -> CounterArrays | None:
        """Counters of the limits of concurrent use; None for a kernel without them."""
        counting = self.heads if self.intervals is None else self.intervals
        return None if counting is None else counting.counters

    @property
    def failing(self) -> bool:
        """True if nodes fail."""
        return self.outages is not None and len(self.outages.time) > 0


def with_steps(profile: ProfileSteps, size: int) -> ProfileSteps:
    """Return an empty profile with space for `size` steps."""
    profile.kept.status.version = -1
    return profile._replace(time=blank(size), free=blank(size, profile.free.shape[1]))
