"""Text formats of numbers, memory sizes and names for readers. Durations: `poolwise.quantities.format_time`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from poolwise.quantities import UNITS, format_count


def format_number(value: float, sign: str = "") -> str:
    """Format a number without an exponent: three significant digits, or a whole number from 1,000."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 999.5:
        return format(value, f"{sign},.0f")
    return format(value, f"{sign}.3g") if abs(value) >= 1e-4 or value == 0 else format(value, f"{sign}.6f")


_ENERGIES = (("MWh", 3.6e9), ("kWh", 3.6e6), ("kJ", 1e3), ("J", 1.0))
"""Unit and its joules, which are also the smallest energy to display in it."""
_LATENCIES = (("h", 3.6e9, 3.6e9), ("min", 1.8e8, 6e7), ("s", 1e6, 1e6), ("ms", 1e3, 1e3), ("us", 0.0, 1.0))
"""Unit, smallest latency to display in it (us), and its microseconds; minutes start at three."""


def energy_unit(joules: float) -> tuple[str, float]:
    """Return the display unit of an energy, or of an axis that ends at it: the unit's name and its joules."""
    return next((pair for pair in _ENERGIES if joules >= pair[1]), _ENERGIES[-1])


def format_energy(joules: float) -> str:
    """Format an energy in a readable unit: 8.3e7 J -> "23.1 kWh"."""
    unit, size = energy_unit(abs(joules))
    return f"{format_number(joules / size)} {unit}"


def latency_unit(us: float) -> tuple[str, float]:
    """Return the display unit of a latency axis up to `us` microseconds: the unit's name and its microseconds."""
    return next(((name, size) for name, least, size in _LATENCIES if us >= least), ("us", 1.0))


def latency_name(which: str) -> str:
    """Return the name of a latency statistic: p99_9 -> "p99.9 latency", p50 -> "median latency"."""
    return f"{'median' if which == 'p50' else which.replace('_', '.')} latency"


def sentence_case(text: str) -> str:
    """Capitalize a text that begins with a word: "mean latency" -> "Mean latency"; "p99 latency" is unchanged."""
    return text[0].upper() + text[1:] if text[:2].isalpha() else text


def capitalize(text: str) -> str:
    """Capitalize the first letter of a text and keep the others."""
    return text[:1].upper() + text[1:]


def humanize_name(name: str) -> str:
    """Replace underscores by spaces: earliest_finish -> "earliest finish"."""
    return name.replace("_", " ")


def population_note(counts: Iterable[int], warm_up: int, condition: str, policy: str = "") -> str:
    """State the measured jobs: their number, one per seed if it differs, and the condition they meet ("every run finished").

    `policy` names the policy of the warm-up; "" if it is unknown.
    """
    jobs = " or ".join(f"{count:,}" for count in sorted(set(counts)))
    after = warm_up_note(warm_up, policy)
    if jobs == "0":
        return f"No job is measured: no job remains that {condition}, {after}."
    return f"Measured on the {jobs} job{'' if jobs == '1' else 's'} that {condition}, {after}."


def warm_up_note(jobs: int, policy: str = "") -> str:
    """State the warm-up and the policy under which it runs: "after a warm-up of 200 jobs under FCFS"; "without a warm-up"."""
    under = f" under {policy}" if policy else ""
    return f"after a warm-up of {format_count(jobs, 'job')}{under}" if jobs else "without a warm-up"


def rows_note(count: int, verb: str, reason: str) -> str:
    """State how many rows of a trace were excluded or changed, and why: "1 row was excluded from the trace: no end."."""
    return f"{format_count(count, 'row')} {'was' if count == 1 else 'were'} {verb}: {reason}."


_ABBREVIATIONS = ("edf", "f1", "fair", "fcfs", "fm", "sjf", "wfp3")


def order_name(order: str) -> str:
    """Write an abbreviated queue order in capitals, as papers do ("FM"); return other names and files unchanged."""
    return order.upper() if order in _ABBREVIATIONS else order


def shared_unit(sizes: Sequence[float]) -> str:
    """Choose one unit for several memory sizes (MiB): TiB or GiB if all sizes are whole numbers of it, else GiB or MiB."""
    units = UNITS["memory"]
    for unit in ("TiB", "GiB"):
        if all(size % units[unit] == 0 for size in sizes) and any(sizes):
            return unit
    return "GiB" if min(sizes, default=0) >= units["GiB"] else "MiB"


def in_unit(size: float, unit: str) -> str:
    """Format a memory size (MiB) in a unit, without the unit's name: 2097152 in GiB -> "2048"."""
    return f"{size / UNITS['memory'][unit]:.6g}"
