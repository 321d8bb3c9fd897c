"""TOML files as nested tables, with dotted paths to their values and errors that report file, line and field."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from poolwise.errors import InputError, UnknownNameError
from poolwise.files import locate

TomlTable = dict[str, Any]
_SYNTAX_LINE = re.compile(r"\s*\(at line (\d+), column (\d+)\)\Z")

SET = "--set"
"""Label of values that the command line replaces."""


class Origin(NamedTuple):
    """Source of a value that does not come from its own key in the file: "--set", or a line of [vary]."""

    label: str
    line: int | None = None


@dataclass
class Document:
    """Tables read from a file, some of whose values may have been replaced.

    A dotted path leads to a value: "machine.pool.memory.memory" is the key `memory` of the `[[machine.pool]]` entry whose
    `name` is "memory". A path that continues below a plain string turns that string into a table with this `name`, so that
    "scheduler.order.as_printed" reaches a setting of an order given only by name. Keys that contain dots, such as those of
    a search's `[space]`, are matched literally: "space.order.theta.low" is `low` of "order.theta".

    Attributes
    ----------
    file : source file
    tables : content
    lines : path -> line of the file
    replaced : dotted path of each replaced value -> its origin
    parts : dotted path -> the document loaded there (such as a machine file in a study)
    """

    file: Path
    tables: TomlTable
    lines: dict[locate.Path, int] = field(default_factory=dict)
    replaced: dict[str, Origin] = field(default_factory=dict)
    parts: dict[str, Document] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Document:
        """Read a TOML file, with or without a byte-order mark; raises InputError with the line of a syntax error."""
        try:
            text = file.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise InputError("the file is not valid UTF-8", file=file, line=line, remedy="save it as UTF-8") from error
        except OSError as error:
            raise InputError(error.strerror or str(error), file=file, remedy="check the path and its permissions") from error
        try:
            tables = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, brackets nested thousands deep
            match = _SYNTAX_LINE.search(str(error))
            line = int(match[1]) if match else text.count("\n") + 1
            message = f"not valid TOML: {_SYNTAX_LINE.sub('', str(error))}" + (f" (column {match[2]})" if match else "")
            raise InputError(message, file=file, line=line, remedy="correct the syntax (https://toml.io)") from error
        return cls(file, tables, locate.lines(text))

    def copy(self) -> Document:
        """Return an independent copy."""
        return Document(self.file, deepcopy(self.tables), self.lines, dict(self.replaced), dict(self.parts))

    # Dotted paths

    def get(self, path: str) -> Any:
        """Return the value at a dotted path; raises UnknownNameError if the path does not exist."""
        value: Any = self.tables
        parts = path.split(".")
        while parts:
            part, parts = _split_key(value, parts)
            value = _child(value, part)
            if value is None:
                raise self._no_path(path, Origin("get"))
        return value

    def set(self, path: str, value: Any, origin: Origin) -> None:
        """Set the value at a dotted path; errors report its origin.

        Raises UnknownNameError if the path leads through a table that does not exist. A new key of an existing table is
        accepted here and checked when the document is validated.
        """
        table: Any = self.tables
        last, rest = _split_key(table, path.split("."))
        while rest:
            part = last
            inner = _child(table, part)
            if inner is None and isinstance(table, dict) and table is self.tables:
                inner = table.setdefault(part, {})
            if isinstance(inner, str):
                inner = {"name": inner}
                _assign(table, part, inner)
            if not isinstance(inner, dict | list):
                raise self._no_path(path, origin)
            table = inner
            last, rest = _split_key(table, rest)
        if isinstance(table, list) and _child(table, last) is None:
            raise self._no_path(path, origin)
        _assign(table, last, value)
        self.replaced[path] = origin

    def _no_path(self, path: str, origin: Origin) -> InputError:
        known = self.paths()
        near = difflib.get_close_matches(path, known, n=1, cutoff=0.5)
        remedy = f"did you mean '{near[0]}'?" if near else f"known paths: {', '.join(known)}"
        return InputError(f"{origin.label}: no such path", file=self.file, line=origin.line, field=path, remedy=remedy)

    def paths(self) -> list[str]:
        """List the dotted paths of all plain values."""
        return [".".join(path) for path in _leaves(self.tables)]

    # Errors

    def dotted(self, path: locate.Path) -> str:
        """Return a path as users write it: entries of arrays of tables by name rather than position."""
        value: Any = self.tables
        words: list[str] = []
        for part in path:
            if isinstance(part, int):
                value = value[part] if isinstance(value, list) and part < len(value) else None
                name = value.get("name") if isinstance(value, dict) else None
                words.append(name if isinstance(name, str) and "." not in name else str(part))
            else:
                value = value.get(part) if isinstance(value, Mapping) else None
                words.append(part)
        return ".".join(words)

    def error(self, path: locate.Path, message: str, remedy: str | None = None) -> InputError:
        """Return an InputError with the location of the value at a path."""
        file, line, label = self.location(path)
        text = f"{label}: {message}" if label else message
        return InputError(text, file=file, line=line, field=self.dotted(path), remedy=remedy)

    @contextmanager
    def errors_at(self, *path: str) -> Iterator[None]:
        """Add the location of a value, or of the setting named by the error, to an InputError raised in the context."""
        try:
            yield
        except InputError as error:
            if error.line is not None:
                raise  # it refers to another file, such as a table that this one names
            inner: Any = self.tables
            for part in path:
                inner = inner.get(part) if isinstance(inner, dict) else None
            setting = tuple(str(error.field).split("."))
            named = isinstance(inner, dict) and setting[0] in inner
            elsewhere = error.file is not None and Path(error.file) != self.file
            message = f"{error.file}: {error.message}" if elsewhere else error.message
            raise self.error((*path, *setting) if named else path, message, error.remedy) from error

    def unknown(self, path: locate.Path, what: str, name: str, known: list[str]) -> UnknownNameError:
        """Return an UnknownNameError with the location of the value at a path."""
        file, line, _ = self.location(path)
        return UnknownNameError.of(what, name, known, file=file, line=line, field=self.dotted(path))

    def resolve_file(self, path: locate.Path, reference: str) -> Path:
        """Resolve a file reference at `path`, relative to the file that contains it; --set tries the current folder first."""
        file, _, label = self.location(path)
        return Path(reference) if label == SET and Path(reference).is_file() else file.parent / reference

    def location(self, path: locate.Path) -> tuple[Path, int | None, str | None]:
        """Return the file, line and origin label (None for the file itself) of the value at a path."""
        dotted = self.dotted(path)
        for here, origin in self.replaced.items():
            if dotted == here or dotted.startswith(f"{here}."):
                return self.file, origin.line, origin.label
        for here, part in self.parts.items():
            depth = here.count(".") + 1
            if dotted.startswith(f"{here}."):
                return part.file, locate.line_of(part.lines, path[depth:]), None
        return self.file, locate.line_of(self.lines, path), None


def _split_key(value: Any, parts: list[str]) -> tuple[str, list[str]]:
    """Split a path into its first key and the rest; the key may contain dots if `value` has such a key."""
    many = 1
    if isinstance(value, dict):
        many = next((k for k in range(len(parts), 1, -1) if ".".join(parts[:k]) in value), 1)
    return ".".join(parts[:many]), parts[many:]


def _child(value: Any, part: str) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list):
        for entry in value:
            if isinstance(entry, dict) and entry.get("name") == part:
                return entry
        if part.isdecimal() and int(part) < len(value):
            return value[int(part)]
    return None


def _assign(table: Any, part: str, value: Any) -> None:
    if isinstance(table, list):
        table[table.index(_child(table, part))] = value
    else:
        table[part] = value


def _leaves(value: Any, here: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*here, key))
    elif isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        for k, entry in enumerate(value):
            yield from _leaves(entry, (*here, str(entry.get("name", k)) if isinstance(entry, dict) else str(k)))
    else:
        yield here
