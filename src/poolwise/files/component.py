"""References to registered components (orders, backfills, placements, models) with settings, as files write them."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, GetJsonSchemaHandler, PrivateAttr, TypeAdapter, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from poolwise import catalog, registry
from poolwise.errors import InputError, UnknownNameError
from poolwise.files.fields import Section
from poolwise.interfaces import (
    AdmissionPolicy,
    BackfillPolicy,
    PerformanceModel,
    PlacementPolicy,
    PreemptionPolicy,
    QueuePolicy,
    Scheduler,
)
from poolwise.registry import FILE, SettingsOf

GROUP_OF: dict[Any, str] = {
    QueuePolicy: "orders",
    BackfillPolicy: "backfills",
    PlacementPolicy: "placements",
    AdmissionPolicy: "admissions",
    PreemptionPolicy: "preemptions",
    PerformanceModel: "models",
    Scheduler: "schedulers",
}
"""Interface that a setting may have -> registry group of its names, since one policy may contain another."""


class Component(Section):
    """A name ("fm"), or a table with a name and settings ({ name = "f1", as_printed = true })."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    _written: str = PrivateAttr("")

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(schema)]}

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> Component:
        """Combine a name with separately given settings; raises InputError for a setting called `name`, which is reserved."""
        if "name" in settings:
            raise InputError(f"'{name}' has no setting 'name'", field="name", remedy="remove it")
        return cls(name=name, **settings)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings without the name."""
        return dict(self.model_extra or {})

    def with_files(self, group: str, change: Callable[[str], str]) -> Component:
        """Apply a function to the files that the component names: those among its settings, and its code "file.py:Name"."""
        module, colon, attribute = self.name.rpartition(":")
        name = f"{change(module)}:{attribute}" if colon and module.endswith(".py") else self.name
        if not self.settings:
            return Component(name=name)
        registered = registry.find(group, self.name if Path(module).is_absolute() else name)
        return Component(name=name, **_with_files(registered, self.settings, change))

    def in_folder(self, group: str, folder: Path) -> Component:
        """Make paths of files, which are relative to a folder, absolute.

        The text of the component still shows them as written. Raises UnknownNameError, and InputError for a file that exists
        only in the current folder.
        """
        component = self.with_files(group, lambda text: _path(text, folder))
        component._written = str(self)
        return component

    def make(self, group: str, **defaults: Any) -> Any:
        """Create the component from the registry, with `defaults` for settings that are not given.

        Raises InputError for an unknown name, an unknown setting (`field` is the setting) or a value of the wrong type.
        """
        registered = registry.find(group, self.name)
        settings = {**defaults, **self.settings}
        if not isinstance(registered, type):
            return registry.make(group, self.name, **settings)
        checked = _checked(registered, settings, f"{group.removesuffix('s')} '{self.name}'")
        return registry.make(group, self.name, **checked)

    def identity(self, group: str) -> dict[str, Any]:
        """Return everything a result depends on: name, settings, and hashes of named files and of code outside Poolwise."""
        registered = registry.find(group, self.name)
        settings = self.settings and _with_files(registered, self.settings, _digest)
        module = inspect.getmodule(registered if isinstance(registered, type) else type(registered))
        if module is None or module.__name__.partition(".")[0] == "poolwise" or module.__file__ is None:
            return {"name": self.name, "settings": settings}
        digest = hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()
        return {"name": self.name.rpartition(":")[2], "settings": settings, "source": digest}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Component) and (self.name, self.settings) == (other.name, other.settings)

    def __str__(self) -> str:
        if self._written:
            return self._written
        settings = ", ".join(f"{k}={v}" for k, v in sorted(self.settings.items()))
        return f"{self.name}({settings})" if settings else self.name


def _with_files(component: Any, settings: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Apply a function to all settings of a class that are files, at any depth."""
    parameters, changed = _parameters(component) if isinstance(component, type) else {}, {}
    for name, value in settings.items():
        marks = getattr(parameters.get(name), "__metadata__", ())
        other = next((mark for mark in marks if isinstance(mark, SettingsOf)), None)
        if other is not None and isinstance(value, dict):
            part = registry.find(other.group, settings.get(other.field, getattr(component, other.field)))
            changed[name] = _with_files(part, value, change)
        else:
            changed[name] = _with_file(parameters.get(name), value, change)
    return changed


def _with_file(kind: Any, value: Any, change: Callable[[str], str]) -> Any:
    """Apply a function to the files in a value, which have the type `Path` or `InputFile`."""
    for each in _alternatives(kind):
        inner = get_args(each)
        if isinstance(value, str) and (each is Path or FILE in getattr(each, "__metadata__", ())):
            return change(value)
        if isinstance(value, dict) and each in GROUP_OF and isinstance(value.get("name"), str):
            return _with_files(registry.find(GROUP_OF[each], value["name"]), value, change)
        if isinstance(value, dict) and is_dataclass(each):
            return _with_files(each, value, change)
        if isinstance(value, dict) and len(inner) == 2:
            return {key: _with_file(inner[1], part, change) for key, part in value.items()}
        if isinstance(value, list) and inner:
            return [_with_file(inner[0], part, change) for part in value]
    return value


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union; for any other type, the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _path(text: str, folder: Path) -> str:
    """Return the full path of an existing file in a folder; names of catalog files and of missing files stay as written.

    Raises InputError if the file exists only in the current folder, since results must not depend on that folder.
    """
    if (folder / text).is_file():
        return str((folder / text).resolve())
    if not Path(text).is_absolute() and Path(text).is_file():
        problem = f"{text} is in the current folder, not in the folder of the file that names it"
        raise InputError(problem, remedy=f"move it, or write {Path(text).resolve()}")
    return text


def _digest(text: str) -> str:
    """Return the content hash of a file found by `_path` or named "catalog:NAME"; other strings are returned unchanged."""
    path, shipped = Path(text), text.startswith(catalog.PREFIX)
    own = [path] if path.is_absolute() and path.is_file() else []
    files = sorted(catalog.FOLDER.glob(f"*/{text.removeprefix(catalog.PREFIX)}")) if shipped else own
    return f"sha256:{hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()}" if files else text


def _checked(implementation: type, settings: dict[str, Any], what: str, before: str = "") -> dict[str, Any]:
    """Check the names and types of a class's settings."""
    parameters, checked = _parameters(implementation), {}
    for name, value in settings.items():
        if name not in parameters:
            raise UnknownNameError.of(f"setting of {what}:", name, parameters, field=f"{before}{name}")
        checked[name] = _value(parameters[name], value, what, f"{before}{name}")
    return checked


def _value(kind: Any, value: Any, what: str, place: str) -> Any:
    """Convert a setting to its type; a table becomes an instance of a configuration class, with its own settings."""
    either = _alternatives(kind)
    part = next((k for k in either if k in GROUP_OF), None)
    if part is not None:
        return _part(part, value, place)
    if Path in either and isinstance(value, str):
        return Path(value)
    inner = next((k for k in (kind, *get_args(kind)) if is_dataclass(k) and isinstance(k, type)), None)
    if inner is not None and isinstance(value, dict):
        parts = _checked(inner, value, what, f"{place}.")
        try:
            return inner(**parts)
        except TypeError as error:  # a required parameter is missing
            raise InputError(str(error), field=place, remedy=f"its settings: {', '.join(_parameters(inner))}") from error
    if get_origin(kind) is tuple and isinstance(value, list) and get_args(kind)[1:] == (...,):
        return tuple(_value(get_args(kind)[0], part, what, f"{place}.{k}") for k, part in enumerate(value))
    try:
        return _adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        message = error.errors()[0]["msg"]
        problem = f"{message[0].lower()}{message[1:]}, got {value!r}"
        raise InputError(problem, field=place, remedy="correct the value") from None


def _part(kind: Any, value: Any, place: str) -> Any:
    """Create a policy or model that is a setting of another one, from a name or a table with a name and settings."""
    try:
        chosen = Component.model_validate(value)
    except ValidationError:
        raise InputError(f"expected a name, got {value!r}", field=place, remedy="write a name or a table") from None
    return chosen.make(GROUP_OF[kind])


@lru_cache(maxsize=1024)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the cached validator of a type."""
    return TypeAdapter(kind)


@lru_cache(maxsize=1024)
def _parameters(implementation: type) -> Mapping[str, Any]:
    """Return parameter -> type of a configuration class."""
    if not is_dataclass(implementation):
        parameters = inspect.signature(implementation).parameters.values()
        return {p.name: Any for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    hints = get_type_hints(implementation, include_extras=True)
    return {part.name: hints.get(part.name, Any) for part in fields(implementation) if part.init}
