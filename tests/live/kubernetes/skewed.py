"""Run Poolwise with skewed clocks: `python -m tests.live.kubernetes.skewed SECONDS RATE ARGUMENTS...`.

The system clock is SECONDS ahead, and the clock that times leases runs RATE times as fast.
"""

from __future__ import annotations

import datetime as dates
import sys
import time
from datetime import timedelta, tzinfo
from types import SimpleNamespace


def skew(seconds: float, rate: float) -> None:
    """Skew the clocks of this process; call it before Poolwise is imported."""
    right, right_ns, steady, begun = time.time, time.time_ns, time.monotonic, time.monotonic()
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)

    class Skewed(dates.datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Skewed:
            return super().now(tz) + timedelta(seconds=seconds)

    dates.datetime = Skewed  # type: ignore[misc]
    from poolwise.live.kubernetes import lease

    lease.time = SimpleNamespace(monotonic=lambda: begun + rate * (steady() - begun))  # type: ignore[assignment]


if __name__ == "__main__":
    skew(float(sys.argv.pop(1)), float(sys.argv.pop(1)))
    from poolwise.cli.app import main

    main()
