"""Kubernetes quantities ("500m", "64Gi", "1e3") as exact fractions, and in the units that schedulers count."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache

from poolwise.errors import InputError

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_SCALE = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000)}
_SCALE |= {unit: Fraction(1000) ** k for k, unit in enumerate("MGTPE", start=2)}
_SCALE |= {f"{unit}i": Fraction(1024) ** k for k, unit in enumerate("KMGTPE", start=1)}
_UNITS = dict.fromkeys(("memory", "space", "storage"), Fraction(2**20)) | {
    "cpu": Fraction(1, 1000),
    "bandwidth": Fraction(10**6),
}
_BYTES = ("ephemeral-storage", "hugepages-")


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Fraction:
    """Parse a quantity; raise InputError if it is invalid."""
    match = _FORM.fullmatch(str(text).strip())
    if match is None:
        raise InputError(f"invalid quantity '{text}'", field="quantity", remedy='write a number and a suffix, such as "64Gi"')
    number, exponent, unit = match.groups()
    return Fraction(number + exponent) if exponent else Fraction(number) * _SCALE[unit or ""]


@lru_cache(maxsize=4096)
def exact_amount(resource: str, text: str) -> Fraction:
    """Return an exact amount in a resource's unit: millicores, MiB, MB/s, or a plain number."""
    unit = Fraction(2**20) if resource.startswith(_BYTES) else _UNITS.get(resource, Fraction(1))
    return parse_quantity(text) / unit


def requested_amount(resource: str, text: str) -> int:
    """Return a requested amount in a resource's unit, rounded up."""
    return math.ceil(exact_amount(resource, text))


def available_amount(resource: str, text: str) -> int:
    """Return an available amount in a resource's unit, rounded down."""
    return math.floor(exact_amount(resource, text))


def quantity_text(amount: Fraction) -> str:
    """Format an amount exactly as a quantity; whole numbers use the largest binary suffix that divides them."""
    if amount.denominator != 1:
        return f"{math.ceil(amount * 1000)}m"
    number = int(amount)
    for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)
