"""Representations of objects that fit a terminal: at most `LINES` lines of at most `WIDTH` characters.

A schedule of a million jobs prints as briefly as one of ten: arrays are shown by type and shape, long collections by their
number of items.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

WIDTH, LINES = 120, 10
_FEW = 4
"""Maximum number of items for writing out an array or a collection."""
_VALUE = 60
"""Maximum number of characters for writing out a value."""


def short_repr(thing: object) -> str:
    """Represent a dataclass or named tuple by its class and fields.

    Assign it in the body of a class: `__repr__ = short_repr`.
    """
    name = type(thing).__name__
    return fit_repr(f"{name}({', '.join(f'{field}={short_value(value)}' for field, value in _fields(thing))})")


def fit_repr(text: str) -> str:
    """Wrap each line of a text at `WIDTH` characters, and drop the lines after the first `LINES`."""
    lines: list[str] = []
    for line in text.splitlines():
        lines += textwrap.wrap(line, WIDTH, subsequent_indent="    ") or [""]
    return "\n".join(lines if len(lines) <= LINES else [*lines[: LINES - 1], "    ..."])


def short_value(value: object) -> str:
    """Represent a value in about 60 characters."""
    if isinstance(value, np.ndarray):
        return f"{value.tolist()}" if value.size <= _FEW else f"<{value.dtype} array of shape {value.shape}>"
    if isinstance(value, str):
        return repr(value if len(value) <= _VALUE else f"{value[: _VALUE - 3]}...")
    if isinstance(value, Mapping):
        items = [f"{short_value(key)}: {short_value(item)}" for key, item in value.items()] if len(value) <= _FEW else []
        return _joined("{", items, "}", value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _whole(value)
    if isinstance(value, tuple | list | set | frozenset):
        first, last = ("[", "]") if isinstance(value, list) else ("(", ")") if isinstance(value, tuple) else ("{", "}")
        items = [short_value(item) for item in value] if len(value) <= _FEW else []
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return _joined(first, items, f"{comma}{last}", value)
    return _whole(value)


def _joined(first: str, items: list[str], last: str, whole: Collection[Any]) -> str:
    text = f"{first}{', '.join(items)}{last}"
    return text if len(items) == len(whole) and len(text) <= _VALUE else f"<{len(whole):,} items>"


def _whole(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _VALUE and "\n" not in text else f"<{type(value).__name__}>"


def _fields(thing: Any) -> Iterator[tuple[str, object]]:
    if is_dataclass(thing):
        yield from ((field.name, getattr(thing, field.name)) for field in fields(thing) if field.repr)
    else:
        yield from ((name, getattr(thing, name)) for name in thing._fields)
