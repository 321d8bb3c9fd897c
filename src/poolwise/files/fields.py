"""Field types of machine and study files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from poolwise.quantities import HORIZON, Dimension, parse


class Section(BaseModel):
    """A table of a file; it is immutable and rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


MOST: Mapping[Dimension, int] = {"time": HORIZON, "memory": 2**40, "bandwidth": 2**40}
"""Maximum of a quantity (ns, MiB, MB/s), so that sums over a machine fit into 64 bits: 290 years, 1 EiB, 1.1 EB/s."""

_BASE: Mapping[Dimension, str] = {"time": "ns", "memory": "MiB", "bandwidth": "MB/s"}


def _quantity(dimension: Dimension) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not a quantity; write a string with a number and a unit")
        if (amount := parse(value, dimension)) > (most := MOST.get(dimension, amount)):
            raise ValueError(f"{value!r} exceeds the maximum of {most:,} {_BASE[dimension]}")
        return amount

    return read


def _schema(dimension: Dimension, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "description": f"{dimension} with a unit", "examples": [example]})


Memory = Annotated[int, BeforeValidator(_quantity("memory")), _schema("memory", "64 GiB")]
"""Memory in MiB, written with a unit."""
Bandwidth = Annotated[int, BeforeValidator(_quantity("bandwidth")), _schema("bandwidth", "25 GB/s")]
"""Bandwidth in MB/s, written with a unit."""
Time = Annotated[int, BeforeValidator(_quantity("time")), _schema("time", "7 us")]
"""Time in ns, written with a unit."""
Count = Annotated[int, Field(strict=True, ge=0, le=2**40)]
"""Integer without a unit, at least 0."""
Positive = Annotated[int, Field(strict=True, ge=1, le=2**40)]
"""Integer without a unit, at least 1."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]
"""Identifier of letters, digits, _ and -, valid as a key of a dotted path."""
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$")]
"""Identifier that may also begin with a digit, such as the name of a partition or a quality of service."""
License = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]*$")]
"""Name of a license, which may name its server, such as `ansys@host`."""


class FileName(NamedTuple):
    """Annotation of a field that names a file, relative to the file that contains the field.

    Attributes
    ----------
    remedy : how to correct the name of a missing file
    folder : catalog folder of "catalog:NAME"; "" if the catalog has no such files
    """

    remedy: str = "give a path relative to this file"
    folder: str = ""


class Registered(NamedTuple):
    """Annotation of a field that is a component, or the name of one whose settings are in another field.

    Attributes
    ----------
    group : registry group
    settings : field with the settings
    none : value that names no component
    """

    group: str
    settings: str = ""
    none: str = ""
