"""Conversion of text columns to numbers, with the position of invalid text; rounding to whole base units."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.quantities import SECOND

_REAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WHOLE = re.compile(r"[-+]?[0-9]+")
_NOT_NUMERIC = re.compile(r"[^-+.0-9eE ]")
_INT64 = range(-(2**63), 2**63)


class NotANumber(ValueError):
    """Text at a position (counted from 0) is not a number of the expected kind."""

    def __init__(self, position: int, problem: str) -> None:
        self.position, self.problem = position, problem
        super().__init__(problem)


def reals(words: Sequence[str]) -> FloatArray:
    """Read words as float64, (n_word,); raise NotANumber for text, NaN, infinities and numbers that exceed float64.

    Unlike `float`, reject "nan", "1_000" and digits of other scripts.
    """
    if _NOT_NUMERIC.search(" ".join(words)) is None:
        try:
            values = np.fromiter(map(float, words), dtype=np.float64, count=len(words))
        except ValueError:
            pass
        else:
            if bool(np.isfinite(values).all()):
                return values
    for position, word in enumerate(words):
        if not are_real((word,)):
            raise NotANumber(position, f"{_quoted(word)} is not a finite number")
    return np.array([float(word) for word in words], dtype=np.float64)


def wholes(words: Sequence[str]) -> IntArray:
    """Read words as int64, (n_word,); raise NotANumber for anything but whole numbers of 64 bits."""
    for position, word in enumerate(words):
        if _WHOLE.fullmatch(word) is None:
            raise NotANumber(position, f"{_quoted(word)} is not a whole number")
        if len(word) > 18 and (len(word) > 40 or int(word) not in _INT64):
            raise NotANumber(position, f"{_quoted(word)} is too large")
    return np.array([int(word) for word in words], dtype=np.int64)


def are_real(words: Sequence[str]) -> bool:
    """Return whether every word is a finite number that `reals` accepts."""
    return all(_REAL.fullmatch(word) and math.isfinite(float(word)) for word in words)


def are_whole(words: Sequence[str]) -> bool:
    """Return whether every word is written as a whole number."""
    return all(_WHOLE.fullmatch(word) for word in words)


def number_text(value: float) -> str:
    """Format a number so that it parses to the same value; whole numbers have no decimal point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e17 else repr(float(value))


def array_to_ns(seconds: FloatArray) -> IntArray:
    """Convert seconds, (n,), to whole nanoseconds, rounded up; whole seconds are exact at any size."""
    whole = np.floor(seconds)
    return whole.astype(np.int64) * SECOND + np.ceil((seconds - whole) * SECOND).astype(np.int64)


def round_up(amounts: FloatArray) -> FloatArray:
    """Round amounts up, (n,), but ignore excess from floating-point multiplication, as `units.parse` does."""
    nearest = np.rint(amounts)
    return np.where(np.abs(amounts - nearest) <= 1e-9 * np.maximum(1.0, amounts), nearest, np.ceil(amounts))


def _quoted(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:37] + "...") if word else "an empty cell"
