"""Options for the memory of jobs: which column of a log counts, what replaces unknown memory, and a factor."""

from __future__ import annotations

import math
from typing import Literal

from poolwise.errors import InputError
from poolwise.units import parse

MemoryField = Literal["used-then-requested", "used", "requested"]

LARGEST = 2**31
"""MiB on a node: times as many nodes it stays below 2**63."""


def check_scale(scale: float) -> None:
    """Raise InputError for a factor that memory cannot have."""
    if not (math.isfinite(scale) and scale > 0):
        raise InputError(f"memory cannot be scaled by {scale}", field="memory_scale", remedy="give a number above 0")


def substitute(unknown: str) -> int | None:
    """MiB per node of a job whose memory is unknown, None to leave the job out.

    Raises InputError for anything but "zero", "exclude" and amounts.
    """
    if unknown == "exclude":
        return None
    if unknown == "zero":
        return 0
    try:
        amount = parse(unknown, "memory")
    except ValueError as error:
        remedy = 'give "zero", "exclude", or an amount per node such as "4 GiB"'
        raise InputError(str(error), field="memory_unknown", remedy=remedy) from error
    if amount > LARGEST:
        raise InputError(f"{unknown} per node is too much", field="memory_unknown", remedy="give less")
    return amount
