"""Validation of the tables of a file: values, files and registered names, with the location of every error."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from poolwise import catalog, registry
from poolwise.errors import InputError, ManyErrors, Problems, UnknownNameError
from poolwise.files.component import Component
from poolwise.files.document import NO_VERSION, SET, Document, Location, TomlTable
from poolwise.files.fields import FileName, Registered
from poolwise.files.locate import Path as FieldPath

Locate = Callable[[FieldPath], Location]
T = TypeVar("T", bound=BaseModel)


def validate(model: type[T], document: Document, path: FieldPath = ()) -> T:
    """Validate the table at `path` of a document; files become absolute, and components are checked.

    Raises InputError with the location and remedy of every problem, in the order of the lines.
    """
    if "version" in model.model_fields:
        document.check_version(path, required=False)
    problems, table = Problems(), document.table(path)
    with problems.attempt():
        section = _checked(model, _resolved(model, table, path, document.location, problems), table, path, problems)
    if not problems.errors:
        return section
    errors = sorted(map(document.located, problems.errors), key=lambda error: error.line or 0)
    once = {(e.file, e.line, e.field): e for e in reversed(errors)}  # a value may fail each of its alternatives
    raise ManyErrors.of([e for e in errors if once[e.file, e.line, e.field] is e])


def _resolved(model: type[BaseModel], table: Any, path: FieldPath, locate: Locate, problems: Problems) -> Any:
    """Return a table with absolute paths and checked components, according to the annotations of a section."""
    if not isinstance(table, dict):
        return table
    tables = dict(table)
    for key, field in model.model_fields.items():
        here, value = (*path, key), table.get(key)
        for mark in field.metadata:
            with problems.attempt(*here):
                if isinstance(mark, FileName) and isinstance(value, str):
                    tables[key] = str(find_file(value, mark, locate(here)))
                elif isinstance(mark, Registered) and mark.settings:
                    name = value if key in table or mark.settings not in table else field.default
                    tables |= _named(mark, key, name, table, path, locate, problems)
                elif isinstance(mark, Registered) and value is not None:
                    tables[key] = _components(mark.group, value, locate(here).file.parent)
        section = _only_section(field.annotation)
        if section is not None and isinstance(value, list):
            tables[key] = [_resolved(section, entry, (*here, k), locate, problems) for k, entry in enumerate(value)]
        elif section is not None and value is not None:
            tables[key] = _resolved(section, value, here, locate, problems)
    return tables


def find_file(reference: str, mark: FileName, location: Location) -> Path:
    """Return the existing file that a value names; --set tries the current folder first. Raises InputError."""
    if mark.folder and reference.startswith(catalog.PREFIX):
        return catalog.find(mark.folder, reference.removeprefix(catalog.PREFIX))
    path = Path(reference) if location.label == SET and Path(reference).is_file() else location.file.parent / reference
    if not path.is_file():
        raise InputError(f"no such file: {reference}", remedy=mark.remedy)
    return path


def _components(group: str, value: Any, folder: Path) -> Any:
    """Return the component or components that a value describes, with absolute paths; check that they can be created."""
    if isinstance(value, list):
        return [_components(group, part, folder) for part in value]
    try:
        component = Component.model_validate(value).in_folder(group, folder)
    except ValidationError:
        return value  # validation of the section reports it
    made = component.make(group)
    if group in ("orders", "backfills") and hasattr(made, "open"):
        made.open()  # reads its files, such as slurm.conf: report errors in them before the run starts
    return component


def _named(
    mark: Registered, key: str, name: Any, table: TomlTable, path: FieldPath, locate: Locate, problems: Problems
) -> TomlTable:
    """Return the name and settings of a component, with absolute paths; raise an error if the name is unknown."""
    settings = table.get(mark.settings, {})
    if not isinstance(name, str) or name == mark.none or not isinstance(settings, dict):
        return {}
    name = Component(name=name).in_folder(mark.group, locate((*path, key)).file.parent).name
    registry.find(mark.group, name)
    with problems.attempt(*path, mark.settings):
        folder = locate((*path, mark.settings)).file.parent
        settings = Component.of(name, settings).in_folder(mark.group, folder).settings
    return {**({key: name} if key in table else {}), **({mark.settings: settings} if settings else {})}


def _checked(model: type[T], value: Any, table: Any, path: FieldPath, problems: Problems) -> T:
    """Validate a resolved table; raises the last problem as an InputError and collects all others in `problems`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        inside = {e["loc"][:k] for e in details for k in range(len(e["loc"]))}
        real = [e for e in details if e["type"] != "too_short" or e["loc"] not in inside]
        *first, last = (_explain(model, table, detail).at(*path) for detail in real)
        problems.errors += first
        raise last from None


def map_files(model: type[BaseModel], table: Any, change: Callable[[str], str]) -> Any:
    """Return a valid table with a function applied to each file that the annotations of its section declare."""
    tables = dict(table)
    for key, field in model.model_fields.items():
        value = table.get(key)
        if value is None:
            continue
        for mark in field.metadata:
            if isinstance(mark, FileName):
                tables[key] = change(value)
            elif isinstance(mark, Registered) and mark.settings and value != mark.none:
                component = Component.of(value, table.get(mark.settings, {})).with_files(mark.group, change)
                tables |= {key: component.name, **({mark.settings: component.settings} if mark.settings in table else {})}
            elif isinstance(mark, Registered) and not mark.settings:
                parts = value if isinstance(value, list) else [value]
                made = [Component.model_validate(part).with_files(mark.group, change).model_dump() for part in parts]
                tables[key] = made if isinstance(value, list) else made[0]
        section = _only_section(field.annotation)
        if section is not None and isinstance(value, dict):
            tables[key] = map_files(section, value, change)
    return tables


def _only_section(annotation: Any) -> type[BaseModel] | None:
    """Return the section type of a field that is a section or a list of sections; None for other fields."""
    kinds = [part for part in get_args(annotation) if part is not type(None)] or [annotation]
    section = kinds[0] if len(kinds) == 1 and isinstance(kinds[0], type) else None
    return section if section is not None and issubclass(section, BaseModel) and section is not Component else None


def _explain(model: type[BaseModel], table: Any, error: ErrorDetails) -> InputError:
    where, kind, context = error["loc"], error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return UnknownNameError.of("key", str(where[-1]), known_keys(model, where[:-1])).at(*where)
    if kind == "missing":
        message, remedy = NO_VERSION if where == ("version",) else ("missing required key", f"add {where[-1]} = ...")
        return InputError(message, remedy=remedy).at(*where)
    message, remedy = _EXPECTED.get(kind) or error["msg"][0].lower() + error["msg"][1:], "correct the value"
    message = f"{message}, got {error['input']!r}"
    if kind == "literal_error":
        choices = [word.strip("' ") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        near = difflib.get_close_matches(str(error["input"]), choices, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'? " if near else ""
        message, remedy = f"invalid value {error['input']!r}", f"{hint}valid values: {', '.join(choices)}"
    elif kind == "value_error":
        message = str(context["error"])
    elif kind == "string_pattern_mismatch":
        message, remedy = f"{error['input']!r} is not a valid name", "use letters, digits, _ and -, starting with a letter"
    return InputError(message, remedy=remedy).at(*_existing(table, where))


_EXPECTED: Mapping[str, str] = {
    "dict_type": "expected a table",
    "model_type": "expected a table",
    "model_attributes_type": "expected a table",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "path_type": "expected a string with a file path",
}
"""Error type of pydantic -> message in terms of TOML; its other messages mention no Python types."""


def _existing(value: Any, path: FieldPath) -> FieldPath:
    """Return the leading part of a path that exists in a table; pydantic appends the names of union members."""
    for k, part in enumerate(path):
        inside = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
        if not inside:
            return path[:k]
        value = value[part]
    return path


def known_keys(model: type[BaseModel], path: FieldPath) -> Mapping[str, Any]:
    """Return the fields of the section at `path` in a model, or of the innermost section that the path reaches."""
    section = model
    for part in path:
        if isinstance(part, str) and part in section.model_fields:
            inner = _section(section.model_fields[part].annotation)
            if inner is None:
                break
            section = inner
    return section.model_fields


def _section(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        inner = _section(argument)
        if inner is not None:
            return inner
    return None
