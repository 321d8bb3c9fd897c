"""Quantities of Kubernetes ("500m", "64Gi", "1e3") as exact fractions, and in the units in which engines count."""

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
_MIB = 2**20


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Fraction:
    """Read a quantity; raises InputError for text that is none."""
    match = _FORM.fullmatch(str(text).strip())
    if match is None:
        raise InputError(f"'{text}' is no quantity", field="quantity", remedy='write a number and a suffix, such as "64Gi"')
    number, exponent, unit = match.groups()
    return Fraction(number + exponent) if exponent else Fraction(number) * _SCALE[unit or ""]


def millicores(text: str) -> Fraction:
    """Cpu in thousandths of a core."""
    return parse_quantity(text) * 1000


def mebibytes(text: str) -> Fraction:
    """Bytes in MiB."""
    return parse_quantity(text) / _MIB


def megabytes_a_second(text: str) -> Fraction:
    """Bytes a second in MB/s."""
    return parse_quantity(text) / 10**6


_UNITS = {"cpu": millicores, "memory": mebibytes, "space": mebibytes, "storage": mebibytes, "bandwidth": megabytes_a_second}
_BYTES = ("ephemeral-storage", "hugepages-")


@lru_cache(maxsize=4096)
def counted(resource: str, text: str) -> Fraction:
    """An amount of a resource in the unit in which engines count it: millicores, MiB, MB/s, else a number."""
    unit = mebibytes if resource.startswith(_BYTES) else _UNITS.get(resource, parse_quantity)
    return unit(text)


def needed(resource: str, text: str) -> int:
    """What is asked of a resource, rounded up."""
    return math.ceil(counted(resource, text))


def offered(resource: str, text: str) -> int:
    """What there is of a resource, rounded down."""
    return math.floor(counted(resource, text))


def quantity_text(amount: Fraction) -> str:
    """Write an amount exactly, as a quantity: whole numbers with the binary suffix that keeps them short."""
    if amount.denominator != 1:
        return f"{math.ceil(amount * 1000)}m"
    number = int(amount)
    for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if number and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)
