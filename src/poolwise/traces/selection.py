"""Selection of the rows of a trace to keep, with counts of the excluded rows by reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError


def occurring(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the reasons with at least one row."""
    return {reason: count for reason, count in counts.items() if count}


def select(reasons: Mapping[str, BoolArray], path: Path, remedy: str) -> tuple[BoolArray, dict[str, int]]:
    """Keep the rows to which no reason applies; count an excluded row under the first reason that applies.

    `reasons` maps each reason to an (n_row,) mask of the rows to exclude for it. Returns an (n_row,) mask of the kept rows, and
    reason -> number of rows for the reasons that apply. Raises InputError, with the path and the remedy, if no row remains.
    """
    keep = np.logical_not(np.zeros_like(next(iter(reasons.values()))))
    excluded = {}
    for reason, bad in reasons.items():
        if count := int((keep & bad).sum()):
            excluded[reason] = count
        keep &= ~bad
    if not keep.any():
        counts = ", ".join(f"{reason}: {count}" for reason, count in excluded.items())
        raise InputError(f"no usable rows ({counts})", file=path, remedy=remedy)
    return keep, excluded
