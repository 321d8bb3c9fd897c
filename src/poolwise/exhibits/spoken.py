"""Numbers as people say them: memory in one unit throughout, no exponents. Durations: `poolwise.units.format_time`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from poolwise.units import UNITS


def spoken_number(value: float, sign: str = "") -> str:
    """Say a number without an exponent: three digits, or whole from a thousand on."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 999.5:
        return format(value, f"{sign},.0f")
    return format(value, f"{sign}.3g") if abs(value) >= 1e-4 or value == 0 else format(value, f"{sign}.6f")


def population_words(counts: Iterable[int], warm_up: int, who: str) -> str:
    """Say on which jobs numbers were measured, such as those that "every run finished"; of several seeds all counts."""
    jobs = " or ".join(f"{count:,}" for count in sorted(set(counts)))
    after = f", after a warm-up of {warm_up:,} job{'' if warm_up == 1 else 's'}" if warm_up else ", without a warm-up"
    return f"Measured on the {jobs} job{'' if jobs == '1' else 's'} that {who}{after}."


def order_name(order: str) -> str:
    """Write a queue order as papers do, FM; other than the name of one, such as a file, as it stands."""
    return order.upper() if order.isalnum() else order


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
