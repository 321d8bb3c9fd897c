"""Quantities with units, and the base units of engines.

Engines count time in int64 nanoseconds and resources in integers of a base unit: MiB for memory and storage capacity,
MB/s for bandwidth, whole cores, nodes and devices. Text carries its unit ("64 GiB", "7 us"); a float becomes an integer
once, here, rounded up.
"""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Literal

NS = 1
US = 1_000
MS = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 3600 * SECOND
DAY = 86400 * SECOND

NEVER = 2**63 - 1
"""An instant (ns) that is never reached, such as the deadline of a job without one, or an end that is not expected."""

UNKNOWN = 2**60
"""Requested time (ns) of a job without one: 36 years, longer than any real request, yet sums of a few of them fit 64 bits."""

OVERDUE = SECOND
"""Expected time left (ns) of a run that is past its expected end (specs of the memory pools, backfilling)."""

HORIZON = 290 * 31_557_600 * SECOND
"""The latest instant (ns), 290 Julian years: later expected ends are clipped to it, and a clock beyond it is an error."""

LONGEST = 2**63 - 1024
"""The longest time (ns) that int64 and float64 both represent exactly; longer ones saturate there, beyond `HORIZON`."""

Dimension = Literal["time", "memory", "bandwidth", "count", "power", "money"]

# unit -> size in the base unit of its dimension (ns, MiB, MB/s, 1, W, $). Decimal and binary prefixes are distinct.
UNITS: dict[str, dict[str, float]] = {
    "time": {"ns": NS, "us": US, "ms": MS, "s": SECOND, "min": MINUTE, "h": HOUR, "d": DAY},
    "memory": {
        "B": 2.0**-20, "KiB": 2.0**-10, "MiB": 1, "GiB": 2**10, "TiB": 2**20,
        "kB": 1e3 / 2**20, "KB": 1e3 / 2**20, "MB": 1e6 / 2**20, "GB": 1e9 / 2**20, "TB": 1e12 / 2**20,
    },
    "bandwidth": {
        "B/s": 1e-6, "kB/s": 1e-3, "MB/s": 1, "GB/s": 1e3, "TB/s": 1e6,
        "Mb/s": 1 / 8, "Gb/s": 1e3 / 8, "Tb/s": 1e6 / 8,
    },
    "count": {"": 1},
    "power": {"W": 1, "kW": 1e3, "MW": 1e6},
    "money": {"$": 1, "k$": 1e3, "M$": 1e6},
}  # fmt: skip
_WORDS = {
    "second": "s", "seconds": "s", "minute": "min", "minutes": "min", "hour": "h", "hours": "h", "day": "d", "days": "d",
}  # fmt: skip
"""Written-out units of time -> unit."""
_QUANTITY = re.compile(r"\s*([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S*)\s*\Z")


def parse(text: str | int | float, dimension: Dimension) -> int:
    """Parse a quantity such as "64 GiB", "7 us" or "3 days" into a whole number of base units, rounded up.

    Raises ValueError, which lists the valid units, for a missing or unknown unit, a negative or infinite number, and text that
    is not a quantity. A number without a unit is valid only for counts.
    """
    units = UNITS[dimension]
    if isinstance(text, bool):
        raise ValueError(f"expected a quantity, got {text}")
    match = _QUANTITY.match(text) if isinstance(text, str) else _QUANTITY.match(repr(text))
    if match is None:
        raise ValueError(f"'{text}' is not a quantity; write a number and a unit, such as '{_example(dimension)}'")
    number, unit = float(match[1].replace("_", "")), _WORDS.get(match[2], match[2])
    if unit not in units:
        choices = ", ".join(u for u in units if u) or "none"
        problem = f"unknown unit '{unit}'" if unit else "the unit is missing"
        raise ValueError(f"'{text}': {problem}; units of {dimension}: {choices}")
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"'{text}': must be finite and not negative")
    scaled = number * units[unit]
    nearest = round(scaled)
    # Rounding errors of the multiplication, as in 0.1 + 0.2, must not push an exact quantity up by one unit.
    return nearest if abs(scaled - nearest) <= 1e-9 * max(1.0, abs(scaled)) else math.ceil(scaled)


def _example(dimension: Dimension) -> str:
    return {
        "time": "7 us", "memory": "64 GiB", "bandwidth": "2 GB/s", "count": "4", "power": "350 W", "money": "900 $",
    }[dimension]  # fmt: skip


def to_ns(seconds: float) -> int:
    """Convert seconds to whole nanoseconds, rounded up."""
    return math.ceil(seconds * SECOND)


def to_seconds(ns: int) -> float:
    """Convert nanoseconds to seconds."""
    return ns / SECOND


def with_slowdown(work_ns: float, slowdown: float) -> int:
    """Return how long `work_ns` of reference work take at a slowdown, ns: work + ceil(work * slowdown), rounded up once.

    Source: specs of the memory pools, runtime = r + ceil(r * (sld_factor * rm_ratio)).
    """
    return math.ceil(work_ns) + math.ceil(work_ns * slowdown) if slowdown else math.ceil(work_ns)


def format_count(number: int, noun: str) -> str:
    """Format a count with the singular or plural of a noun: (1, "job") -> "1 job", (0, "job") -> "0 jobs"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_memory(mib: float) -> str:
    """Format MiB with the most readable binary unit: 524288 -> '512 GiB'."""
    for unit, size in (("TiB", 2**20), ("GiB", 2**10)):
        if abs(mib) >= size:
            return f"{mib / size:.6g} {unit}"
    return f"{mib:.6g} MiB"


_TIMES = ((86400, "day", "days"), (3600, "h", "h"), (60, "min", "min"), (1, "s", "s"))
_MINUTE = 59.95
"""Seconds below which a duration, rounded to three digits, is less than a minute."""
_WHOLE = 10
"""Minimum count of a unit at which the next smaller unit is omitted."""


def format_time(seconds: float) -> str:
    """Format a duration with at most two units: 7380 -> '2 h 3 min', 1.13e6 -> '13 days', 42.4 -> '42.4 s'.

    Durations of at least 1 ns have no exponent; values that are not finite give "-".
    """
    if not math.isfinite(seconds):
        return "-"
    if seconds < 0:
        return f"-{format_time(-seconds)}"
    for (size, singular, plural), (smaller, name, _) in pairwise(_TIMES) if seconds >= _MINUTE else ():
        step = size if seconds >= _WHOLE * size else smaller
        count, rest = divmod(round(seconds / step) * step, size)
        if count:
            words = f"{count:,} {singular if count == 1 else plural}"
            return f"{words} {rest // smaller} {name}" if rest and count < _WHOLE else words
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if float(f"{seconds / scale:.3g}") >= 1:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns" if seconds else "0 s"


def shared_time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit (s, name) for an axis of this length: the largest that fits at least three times, else 's'."""
    return next(((size, many) for size, _, many in _TIMES if seconds >= 3 * size), (1, "s"))
