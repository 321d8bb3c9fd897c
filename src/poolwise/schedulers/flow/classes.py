"""Merge equal rows into classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import IntArray
from poolwise.random import mix


def merged(*columns: NDArray[np.generic]) -> tuple[IntArray, IntArray]:
    """Assign equal numbers to rows with equal values.

    Parameters
    ----------
    columns
        Each (n,).

    Returns
    -------
    of : (n,) class number of each row; classes are ordered by the columns' values, the first column first
    first : (n_class,) first row of each class
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if not len(column) or (column == column[0]).all():
            continue  # most columns are constant, and comparing is much cheaper than sorting
        values, place = np.unique(column, return_inverse=True)
        # Renumber after each column, so that products of counts fit into 64 bits.
        code = np.unique(code * len(values) + place.reshape(-1), return_inverse=True)[1].reshape(-1)
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return of.reshape(-1).astype(np.int64), first.astype(np.int64)


def named(tag: int, *columns: NDArray[np.generic]) -> IntArray:
    """Return 63-bit hashes of rows, (n,); rows with equal tag and values have equal hashes in every round."""
    state = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in (np.full(len(state), tag), *columns):  # mix the tag as well: flipping its bits must not cancel a value
        state = mix(state, column.astype(np.float64 if column.dtype.kind == "f" else np.int64).view(np.uint64))
    return (state >> np.uint64(1)).astype(np.int64)


def rank_within(group: IntArray) -> IntArray:
    """Return the number of earlier rows with the same group number as each row, (n,)."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(group) else np.zeros(0, np.int64)
    lengths = np.diff(np.concatenate([begins, [len(group)]]))
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - np.repeat(begins, lengths)
    return rank
