"""TOML files as nested tables, with dotted paths to their values and errors that report file, line and field.

A document is immutable: replacing a value returns another document, which shares the unchanged tables.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from poolwise.errors import InputError, UnknownNameError
from poolwise.files import locate

TomlTable = dict[str, Any]
_SYNTAX_LINE = re.compile(r"\s*\(at line (\d+), column (\d+)\)\Z")

SET = "--set"
"""Label of values that the command line replaces."""
SETTINGS = "settings"
"""Optional table of policies; a path may lead through it even if a file omits it."""
NO_VERSION = ("missing format version", "write version = 1 at the top")


class Origin(NamedTuple):
    """Origin of a value that is not written under its own key in the file: "--set", or a line of [vary]."""

    label: str
    line: int | None = None


class Location(NamedTuple):
    """File and line of a value, and its origin's label; None for the file itself."""

    file: Path
    line: int | None
    label: str | None


@dataclass(frozen=True)
class Document:
    """Tables read from a file; some of their values or sections may come from elsewhere.

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
    lines: Mapping[locate.Path, int] = field(default_factory=dict)
    replaced: Mapping[str, Origin] = field(default_factory=dict)
    parts: Mapping[str, Document] = field(default_factory=dict)

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

    def table(self, path: locate.Path) -> Any:
        """Return the table at a path."""
        value: Any = self.tables
        for part in path:
            value = value[part]
        return value

    def check_version(self, path: locate.Path = (), *, required: bool = True) -> None:
        """Check that the table at `path` has version = 1; raises InputError, for a missing version only if it is `required`."""
        version = self.table(path).get("version")
        if version is None and required:
            raise self.error((*path, "version"), *NO_VERSION)
        if version is not None and (version != 1 or isinstance(version, bool)):
            raise self.error((*path, "version"), f"unsupported version {version!r}", "this release reads version = 1")

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

    def with_value(self, path: str, value: Any, origin: Origin, fixed: Collection[str] = ()) -> Document:
        """Replace the value at a dotted path; errors report its origin.

        Raises UnknownNameError if the path leads through a table that does not exist, except for `SETTINGS`. A new key of an
        existing table is accepted here and checked when the document is validated. The error suggests no paths in the sections
        that `fixed` names.
        """
        try:
            tables = _with_value(self.tables, path.split("."), value, top=True)
        except LookupError:
            raise self._no_path(path, origin, fixed) from None
        below = f"{path}."
        origins = {here: before for here, before in self.replaced.items() if not here.startswith(below)}
        parts = {here: part for here, part in self.parts.items() if here != path}
        return replace(self, tables=tables, replaced={**origins, path: origin}, parts=parts)

    def with_part(self, section: str, part: Document, tables: TomlTable) -> Document:
        """Replace a section, such as one given as a file name, by tables of another document; errors report that document."""
        replaced = {here: origin for here, origin in self.replaced.items() if here != section}
        return replace(self, tables={**self.tables, section: tables}, replaced=replaced, parts={**self.parts, section: part})

    def with_tables(self, **sections: Any) -> Document:
        """Replace or add sections whose values need no location."""
        return replace(self, tables={**self.tables, **sections})

    def with_origin(self, path: str, origin: Origin) -> Document:
        """Record the origin of the value at a path."""
        return replace(self, replaced={**self.replaced, path: origin})

    def without(self, *sections: str) -> Document:
        """Remove sections."""
        return replace(self, tables={key: table for key, table in self.tables.items() if key not in sections})

    def _no_path(self, path: str, origin: Origin, fixed: Collection[str] = ()) -> InputError:
        paths = [other for other in self.paths() if other.partition(".")[0] not in fixed]
        near = difflib.get_close_matches(path, paths, n=1, cutoff=0.5)
        remedy = f"did you mean '{near[0]}'?" if near else f"known paths: {', '.join(paths)}"
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
        return self.located(InputError(message, remedy=remedy).at(*path))

    def unknown(self, path: locate.Path, what: str, name: str, known: Sequence[str]) -> InputError:
        """Return an UnknownNameError with the location of the value at a path."""
        return self.located(UnknownNameError.of(what, name, known).at(*path))

    def located(self, error: InputError) -> InputError:
        """Return an error with the location of the value at a path, or of the setting below it that the error names."""
        if error.located or error.line is not None:
            return error  # it refers to another file, such as a table that this one names
        inner: Any = self.tables
        for part in error.path:
            inner = _child(inner, str(part))
        setting = tuple(str(error.field).split("."))
        path = (*error.path, *setting) if isinstance(inner, dict) and setting[0] in inner else error.path
        file, line, label = self.location(path)
        other = f"{error.file}: " if error.file is not None and Path(error.file) != self.file else ""
        text = f"{f'{label}: ' if label else ''}{other}{error.message}"
        located = type(error)(text, file=file, line=line, field=self.dotted(path), remedy=error.remedy)
        located.located = True
        return located

    @contextmanager
    def errors_at(self, *path: str | int) -> Iterator[None]:
        """Add the location of the value at a path to an InputError raised in the context."""
        try:
            yield
        except InputError as error:
            raise self.located(error.at(*path)) from error

    def location(self, path: locate.Path) -> Location:
        """Return the location of the value at a path."""
        dotted = self.dotted(path)
        for here, origin in self.replaced.items():
            if dotted == here or dotted.startswith(f"{here}."):
                return Location(self.file, origin.line, origin.label)
        for here, part in self.parts.items():
            depth = here.count(".") + 1
            if dotted.startswith(f"{here}."):
                return Location(part.file, locate.line_of(part.lines, path[depth:]), None)
        return Location(self.file, locate.line_of(self.lines, path), None)


def _split_key(value: Any, parts: list[str]) -> tuple[str, list[str]]:
    """Split a path into its first key and the rest; the key may contain dots if `value` has such a key."""
    many = 1
    if isinstance(value, dict):
        many = next((k for k in range(len(parts), 1, -1) if ".".join(parts[:k]) in value), 1)
    return ".".join(parts[:many]), parts[many:]


def _child(value: Any, part: str) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and (k := _position(value, part)) is not None:
        return value[k]
    return None


def _position(entries: list[Any], part: str) -> int | None:
    """Return the position of an entry, given its name or position."""
    for k, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get("name") == part:
            return k
    return int(part) if part.isdecimal() and int(part) < len(entries) else None


def _with_value(table: Any, parts: list[str], value: Any, *, top: bool = False) -> Any:
    """Return a table or list with the value at a path replaced; raises LookupError for a path that does not exist."""
    part, rest = _split_key(table, parts)
    inner = _child(table, part)
    if inner is None and (isinstance(table, list) or (rest and not top and part != SETTINGS)):
        raise LookupError
    if rest:
        inner = {} if inner is None else {"name": inner} if isinstance(inner, str) else inner
        if not isinstance(inner, dict | list):
            raise LookupError
        value = _with_value(inner, rest, value)
    if isinstance(table, list):
        position = _position(table, part)
        return [value if k == position else entry for k, entry in enumerate(table)]
    return {**table, part: value}


def _leaves(value: Any, here: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*here, key))
    elif isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
        for k, entry in enumerate(value):
            yield from _leaves(entry, (*here, str(entry.get("name", k)) if isinstance(entry, dict) else str(k)))
    else:
        yield here
