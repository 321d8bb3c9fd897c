"""Durations in Slurm's syntax.

Source: slurm.conf(5), "PriorityMaxAge"; sbatch(1), "--time".
"""

from __future__ import annotations

import re
from typing import Final

FOREVER: Final = -1
"""An infinite duration: UNLIMITED, INFINITE or -1."""

_CLOCK = re.compile(r"(?:(?P<days>\d+)-)?(?P<a>\d+)(?::(?P<b>\d+))?(?::(?P<c>\d+))?\Z")


def seconds(text: str) -> int:
    """Return a duration in seconds, `FOREVER` for an infinite one; raises ValueError for an invalid one.

    Valid forms are "minutes", "minutes:seconds", "h:m:s", "days-h", "days-h:m", "days-h:m:s".
    """
    if text.upper() in ("UNLIMITED", "INFINITE", "-1"):
        return FOREVER
    match = _CLOCK.match(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a time such as 30, 1:30:00, 7-0 or UNLIMITED")
    parts = [int(match[name]) for name in "abc" if match[name] is not None]
    if match["days"] is not None:
        return int(match["days"]) * 86400 + sum(part * size for part, size in zip(parts, (3600, 60, 1), strict=False))
    if len(parts) == 3:
        return parts[0] * 3600 + parts[1] * 60 + parts[2]
    return parts[0] * 60 + (parts[1] if len(parts) > 1 else 0)
