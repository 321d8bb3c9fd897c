"""A named thing and its settings: an order, a backfill, a placement, a model, as a study file chooses it."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, GetJsonSchemaHandler, TypeAdapter, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from poolwise import catalog, registry
from poolwise.errors import InputError, UnknownNameError
from poolwise.files.fields import Section
from poolwise.interfaces import AdmissionPolicy, BackfillPolicy, PerformanceModel, PlacementPolicy, QueuePolicy, Scheduler

GROUP_OF: dict[Any, str] = {
    QueuePolicy: "orders",
    BackfillPolicy: "backfills",
    PlacementPolicy: "placements",
    AdmissionPolicy: "admissions",
    PerformanceModel: "models",
    Scheduler: "schedulers",
}
"""Interface that a setting may be of -> group in which it is found by name: a policy may be a part of another."""


class Component(Section):
    """Written as a name ("fm") or as a table with settings beside the name ({ name = "f1", as_printed = true })."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(schema)]}

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any]) -> Component:
        """Put a name and settings from elsewhere together; raises InputError for a setting called `name`, which none can be."""
        if "name" in settings:
            raise InputError(f"no setting of '{name}' is called 'name'", field="name", remedy="leave it out")
        return cls(name=name, **settings)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings beside the name."""
        return dict(self.model_extra or {})

    @property
    def hashed_settings(self) -> dict[str, Any]:
        """Settings, with the hash of each file that they name in its place."""
        found: dict[str, Any] = _replaced(self.settings, _digest)
        return found

    def beside(self, folder: Path) -> Component:
        """Resolve "file.py:Name", and settings that are the name of a file such as "profiles.csv", relative to a folder."""
        where, colon, attribute = self.name.rpartition(":")
        own = colon and where.endswith(".py")
        name = f"{(folder / where).resolve()}:{attribute}" if own else self.name
        return Component(name=name, **_replaced(self.settings, lambda text: _path(text, folder)))

    def make(self, group: str, **defaults: Any) -> Any:
        """Find and configure it.

        Raises InputError for an unknown name, an unknown setting (`field` is the setting), or a value of the wrong type.
        """
        found = registry.find(group, self.name)
        settings = {**defaults, **self.settings}
        if not isinstance(found, type):
            return registry.make(group, self.name, **settings)
        checked = _checked(found, settings, f"{group.removesuffix('s')} '{self.name}'")
        return registry.make(group, self.name, **checked)

    def identity(self, group: str) -> dict[str, Any]:
        """What a result depends on: name, settings, the bytes of files named there and of code from outside Poolwise."""
        found = registry.find(group, self.name)
        content: dict[str, Any] = {"name": self.name, "settings": self.hashed_settings}
        module = inspect.getmodule(found if isinstance(found, type) else type(found))
        if module is not None and module.__name__.partition(".")[0] != "poolwise" and module.__file__ is not None:
            digest = hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()
            content |= {"name": self.name.rpartition(":")[2], "source": digest}
        return content

    def __str__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in sorted(self.settings.items()))
        return f"{self.name}({settings})" if settings else self.name


def _replaced(value: Any, change: Callable[[str], Any]) -> Any:
    """Settings with every string in them changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _replaced(inner, change) for key, inner in value.items()}
    return [_replaced(inner, change) for inner in value] if isinstance(value, list) else value


def _path(text: str, folder: Path) -> str:
    """The full path of a file in a folder that a string names (with its ending); any other string as it is.

    Raises InputError where there is none, but one in the current folder: which of them is meant must not depend on that.
    """
    path = folder / text
    if not path.suffix or path.is_file():
        return str(path.resolve()) if path.suffix else text
    if not Path(text).is_absolute() and Path(text).is_file():
        problem = f"{text} is in the current folder, not beside the file that names it"
        raise InputError(problem, remedy=f"move it, or write {Path(text).resolve()}")
    return text


def _digest(text: str) -> str:
    """Hash of the file that `_path` found, or of the shipped ones that "catalog:NAME" may mean; other strings as they are."""
    path, shipped = Path(text), text.startswith(catalog.PREFIX)
    own = [path] if path.is_absolute() and path.is_file() else []
    files = sorted(catalog.FOLDER.glob(f"*/{text.removeprefix(catalog.PREFIX)}")) if shipped else own
    return f"sha256:{hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest()}" if files else text


def _checked(found: type, settings: dict[str, Any], what: str, before: str = "") -> dict[str, Any]:
    """Settings of a configuration class, each of the type that it has there."""
    known, checked = _parameters(found), {}
    for name, value in settings.items():
        if name not in known:
            raise UnknownNameError.of(f"setting of {what}:", name, known, field=f"{before}{name}")
        checked[name] = _value(known[name], value, what, f"{before}{name}")
    return checked


def _value(kind: Any, value: Any, what: str, place: str) -> Any:
    """A setting of a type; a table becomes the configuration that the type is, with settings of its own."""
    either = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    part = next((k for k in either if k in GROUP_OF), None)
    if part is not None:
        return _part(part, value, place)
    inner = next((k for k in (kind, *get_args(kind)) if is_dataclass(k) and isinstance(k, type)), None)
    if inner is not None and isinstance(value, dict):
        parts = _checked(inner, value, what, f"{place}.")
        try:
            return inner(**parts)
        except TypeError as error:  # a part without a default is missing
            raise InputError(str(error), field=place, remedy=f"its parts: {', '.join(_parameters(inner))}") from error
    if get_origin(kind) is tuple and isinstance(value, list) and get_args(kind)[1:] == (...,):
        return tuple(_value(get_args(kind)[0], part, what, f"{place}.{k}") for k, part in enumerate(value))
    try:
        return _adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        raise InputError(error.errors()[0]["msg"], field=place, remedy=f"instead of {value!r}") from None


def _part(kind: Any, value: Any, place: str) -> Any:
    """A policy or model that is a setting of another one, as written: a name, or a table with settings beside the name."""
    try:
        chosen = Component.model_validate(value)
    except ValidationError:
        raise InputError("expected a name", field=place, remedy=f"instead of {value!r}") from None
    return chosen.make(GROUP_OF[kind])


@lru_cache(maxsize=1024)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Check of a type."""
    return TypeAdapter(kind)


@lru_cache(maxsize=1024)
def _parameters(found: type) -> Mapping[str, Any]:
    """Parameter -> type of a configuration class."""
    if not is_dataclass(found):
        given = inspect.signature(found).parameters.values()
        return {one.name: Any for one in given if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}
    hints = get_type_hints(found)
    return {part.name: hints.get(part.name, Any) for part in fields(found) if part.init}
