"""Which rows of a trace are kept, and the counts of those that are not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError


def select(reasons: Mapping[str, BoolArray], path: Path, remedy: str) -> tuple[BoolArray, dict[str, int]]:
    """Keep the rows that no reason speaks against; a row that is left out counts under the first that does.

    Parameters
    ----------
    reasons
        Reason -> (n_row,) whether a row is left out for it.
    path, remedy
        For the error if no row is left.

    Returns
    -------
    keep
        (n_row,) bool.
    excluded
        Reason -> rows, of those that apply.

    Raises InputError if no row is left.
    """
    keep = np.logical_not(np.zeros_like(next(iter(reasons.values()))))
    excluded = {}
    for reason, bad in reasons.items():
        if count := int((keep & bad).sum()):
            excluded[reason] = count
        keep &= ~bad
    if not keep.any():
        why = ", ".join(f"{reason}: {count}" for reason, count in excluded.items())
        raise InputError(f"no row can be used ({why})", file=path, remedy=remedy)
    return keep, excluded
