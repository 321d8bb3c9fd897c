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


_ENERGIES = (("MWh", 3.6e9), ("kWh", 3.6e6), ("kJ", 1e3), ("J", 1.0))
"""Unit, and its joules, from which on it reads best."""
_LATENCIES = (("h", 3.6e9, 3.6e9), ("min", 1.8e8, 6e7), ("s", 1e6, 1e6), ("ms", 1e3, 1e3), ("us", 0.0, 1.0))
"""Unit, from how many us on it reads best, and its us; minutes from three on."""


def energy_unit(joules: float) -> tuple[str, float]:
    """Choose the unit of an energy, or of an axis that reaches it: its name and its joules."""
    return next((pair for pair in _ENERGIES if joules >= pair[1]), _ENERGIES[-1])


def spoken_energy(joules: float) -> str:
    """Say an energy in the unit that reads best: 8.3e7 J -> "23.1 kWh"."""
    unit, size = energy_unit(abs(joules))
    return f"{spoken_number(joules / size)} {unit}"


def latency_unit(us: float) -> tuple[str, float]:
    """Choose the unit of an axis of latencies that reaches so many us: its name and its microseconds."""
    return next(((name, size) for name, least, size in _LATENCIES if us >= least), ("us", 1.0))


def latency_name(which: str) -> str:
    """Name the latency that counts: p99_9 -> "p99.9 latency", p50 -> "median latency"."""
    return f"{'median' if which == 'p50' else which.replace('_', '.')} latency"


def sentence_case(words: str) -> str:
    """Begin with a capital, unless it is a symbol: "mean latency" -> "Mean latency", but "p99 latency"."""
    return words[0].upper() + words[1:] if words[:2].isalpha() else words


def in_words(name: str) -> str:
    """Write a name of a file's as words: earliest_finish -> "earliest finish"."""
    return name.replace("_", " ")


def population_words(counts: Iterable[int], warm_up: int, who: str) -> str:
    """Say on which jobs numbers were measured, such as those that "every run finished"; of several seeds all counts."""
    jobs = " or ".join(f"{count:,}" for count in sorted(set(counts)))
    after = f", after a warm-up of {warm_up:,} job{'' if warm_up == 1 else 's'}" if warm_up else ", without a warm-up"
    return f"Measured on the {jobs} job{'' if jobs == '1' else 's'} that {who}{after}."


_ABBREVIATIONS = ("edf", "f1", "fair", "fcfs", "fm", "sjf", "wfp3")


def order_name(order: str) -> str:
    """Write a queue order as papers do, FM; the name of one that is a word, or a file, as it stands."""
    return order.upper() if order in _ABBREVIATIONS else order


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
