"""Options for the memory of jobs: which log field to read, a substitute for unknown memory, and a scale factor."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.quantities import parse

MemoryField = Literal["used-then-requested", "used", "requested"]

LARGEST = 2**31
"""Largest accepted memory on a node, MiB; its product with a number of nodes stays below 2**63."""


def check_memory(scale: float, unknown: str) -> None:
    """Raise InputError for an invalid scale factor or an invalid substitute for unknown memory."""
    if not (math.isfinite(scale) and scale > 0):
        raise InputError(f"invalid memory scale {scale}", field="memory_scale", remedy="use a number above 0")
    parse_memory_unknown(unknown)


def parse_memory_unknown(unknown: str) -> int | None:
    """Return the MiB per node of a job whose memory is unknown, or None to exclude such jobs.

    Raises InputError for anything but "zero", "exclude" and amounts.
    """
    if unknown == "exclude":
        return None
    if unknown == "zero":
        return 0
    try:
        amount = parse(unknown, "memory")
    except ValueError as error:
        remedy = 'use "zero", "exclude", or an amount per node such as "4 GiB"'
        raise InputError(str(error), field="memory_unknown", remedy=remedy) from error
    if amount > LARGEST:
        raise InputError(f"{unknown} per node is too large", field="memory_unknown", remedy="use at most 2 PiB")
    return amount


def with_unknown(memory: IntArray, is_known: BoolArray, unknown: str, repaired: dict[str, int]) -> IntArray:
    """Return the memory (MiB), (n_job,), with a substitute where unknown, and count these jobs as repaired."""
    amount = parse_memory_unknown(unknown)
    if amount is None or is_known.all():
        return memory
    repaired[f"memory unknown or 0, set to {unknown}"] = int((~is_known).sum())
    return np.where(is_known, memory, amount)
