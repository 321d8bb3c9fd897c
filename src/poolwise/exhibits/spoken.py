"""Numbers as people say them: durations in two parts at most, memory in one unit throughout, no exponents."""

from __future__ import annotations

import math
from collections.abc import Sequence

from poolwise.units import UNITS

_PARTS = ((86400, "day", "days"), (3600, "h", "h"), (60, "min", "min"))
_WHOLE = 10
"""From so many of a unit on, the next smaller one is not said."""


def spoken_time(seconds: float) -> str:
    """Say a duration: 7380 -> "2 h 3 min", 1.13e6 -> "13 days"; below a minute as a decimal number of seconds."""
    if not math.isfinite(seconds):
        return "-"
    if seconds < 0:
        return f"-{spoken_time(-seconds)}"
    if seconds < 59.95:
        return f"{seconds:.3g} s" if seconds >= 1 or seconds == 0 else f"{1000 * seconds:.3g} ms"
    for k, (size, _, _) in enumerate(_PARTS):
        smaller = _PARTS[k + 1][0] if k + 1 < len(_PARTS) else 1
        rounded = round(seconds / size) * size if seconds >= _WHOLE * size else round(seconds / smaller) * smaller
        if rounded >= size:
            break
    size, one, many = _PARTS[k]
    count, rest = divmod(rounded, size)
    words = f"{count:,} {one if count == 1 else many}"
    rest = round(rest / smaller)
    if not rest or count >= _WHOLE:
        return words
    return f"{words} {rest} {_PARTS[k + 1][1] if k + 1 < len(_PARTS) else 's'}"


def spoken_number(value: float, sign: str = "") -> str:
    """Say a number without an exponent: three digits, or whole from a thousand on."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 999.5:
        return format(value, f"{sign},.0f")
    return format(value, f"{sign}.3g") if abs(value) >= 1e-4 or value == 0 else format(value, f"{sign}.6f")


def shared_unit(sizes: Sequence[float]) -> str:
    """Choose one unit for several sizes of memory (MiB): the largest in which all are whole numbers, if there is one."""
    units = UNITS["memory"]
    for unit in ("TiB", "GiB"):
        if all(size % units[unit] == 0 for size in sizes) and any(sizes):
            return unit
    return "GiB" if min(sizes, default=0) >= units["GiB"] else "MiB"


def in_unit(size: float, unit: str) -> str:
    """Write a size (MiB) as a number in a unit, without the unit: 2097152 in GiB -> "2048"."""
    return f"{size / UNITS['memory'][unit]:.6g}"
