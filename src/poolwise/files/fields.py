"""Field types of machine and study files, and the errors for invalid values."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from poolwise.errors import InputError, ManyErrors
from poolwise.files.document import Document
from poolwise.units import HORIZON, Dimension, parse


class Section(BaseModel):
    """A table of a file: immutable, unknown keys rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


MOST: Mapping[Dimension, int] = {"time": HORIZON, "memory": 2**40, "bandwidth": 2**40}
"""Maximum of one quantity (ns, MiB, MB/s): sums over a machine fit into 64 bits. Equals 290 years, 1 EiB, 1.1 EB/s."""

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

T = TypeVar("T", bound=BaseModel)


def validate(model: type[T], document: Document, path: tuple[str | int, ...] = ()) -> T:
    """Validate the table at `path` of a document; raises InputError with the location and remedy of every problem."""
    value: Any = document.tables
    for part in path:
        value = value[part]
    try:
        return model.model_validate(value)
    except ValidationError as error:
        inside = {e["loc"][:k] for e in error.errors(include_url=False) for k in range(len(e["loc"]))}
        real = [e for e in error.errors(include_url=False) if e["type"] != "too_short" or e["loc"] not in inside]
        found = sorted(real, key=lambda e: _line(document, (*path, *e["loc"])))
        errors = [_explain(model, document, path, one) for one in found]
        once = {(one.file, one.line, one.field): one for one in reversed(errors)}  # a value may fail each of its alternatives
        raise ManyErrors.of([one for one in errors if once[one.file, one.line, one.field] is one]) from None


def check_version(document: Document, path: tuple[str | int, ...] = (), model: type[BaseModel] | None = None) -> None:
    """Check that the table at `path` has version = 1; raises InputError for another version, without reading further.

    If a `model` with a version field validates the table next, that validation reports a missing version with the other
    problems.
    """
    table: Any = document.tables
    for part in path:
        table = table[part]
    version = table.get("version")
    if version is None:
        if model is None or "version" not in model.model_fields:
            raise _no_version(document, path)
        return
    if version != 1 or isinstance(version, bool):
        raise document.error((*path, "version"), f"unsupported version {version!r}", "this release reads version = 1")


def _no_version(document: Document, path: tuple[str | int, ...]) -> InputError:
    return document.error((*path, "version"), "missing format version", "write version = 1 at the top")


def _line(document: Document, path: tuple[str | int, ...]) -> int:
    return document.location(path)[1] or 0


def _explain(model: type[BaseModel], document: Document, base: tuple[str | int, ...], error: ErrorDetails) -> InputError:
    where, kind, context = (*base, *error["loc"]), error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        known = sorted(known_keys(model, error["loc"][:-1]))
        return document.unknown(where, "key", str(error["loc"][-1]), known)
    if kind == "missing" and error["loc"] == ("version",):
        return _no_version(document, base)
    if kind == "missing":
        return document.error(where, "missing required key", f"add {error['loc'][-1]} = ...")
    where = _existing(document, where)
    if kind == "literal_error":
        known = [word.strip("' ") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        near = difflib.get_close_matches(str(error["input"]), known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'? " if near else ""
        return document.error(where, f"invalid value {error['input']!r}", f"{hint}valid values: {', '.join(known)}")
    if kind == "value_error":
        return document.error(where, str(context["error"]), "correct the value")
    if kind == "string_pattern_mismatch":
        return document.error(where, f"{error['input']!r} is not a valid name", "use letters, digits, _ and -, a letter first")
    message = _EXPECTED.get(kind) or error["msg"][0].lower() + error["msg"][1:]
    return document.error(where, f"{message}, got {error['input']!r}", "correct the value")


_EXPECTED: Mapping[str, str] = {
    "dict_type": "expected a table",
    "model_type": "expected a table",
    "model_attributes_type": "expected a table",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "path_type": "expected a string with a file path",
}
"""Error type -> message in TOML's terms; pydantic's other messages mention no Python types."""


def _existing(document: Document, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the leading part of a path that the document contains; pydantic appends the names of alternatives."""
    value: Any = document.tables
    for k, part in enumerate(path):
        inside = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
        if not inside:
            return path[:k]
        value = value[part]
    return path


def known_keys(model: type[BaseModel], path: tuple[str | int, ...]) -> Mapping[str, Any]:
    """Return the fields of the section at `path` in a model, or of the innermost section that the path reaches."""
    found = model
    for part in path:
        if isinstance(part, str) and part in found.model_fields:
            inner = _section(found.model_fields[part].annotation)
            if inner is None:
                break
            found = inner
    return found.model_fields


def _section(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        inner = _section(argument)
        if inner is not None:
            return inner
    return None
