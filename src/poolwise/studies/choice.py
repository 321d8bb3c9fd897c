"""A named thing and its settings: an order, a backfill, a placement, a model, as a study file chooses it."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ConfigDict, GetJsonSchemaHandler, TypeAdapter, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from poolwise import registry
from poolwise.errors import InputError, UnknownNameError
from poolwise.studies.fields import Section


class Choice(Section):
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

    @property
    def settings(self) -> dict[str, Any]:
        """Settings beside the name."""
        return dict(self.model_extra or {})

    def beside(self, folder: Path) -> Choice:
        """Resolve "file.py:Name" relative to a folder."""
        where, colon, attribute = self.name.rpartition(":")
        if not colon or not where.endswith(".py"):
            return self
        return self.model_copy(update={"name": f"{(folder / where).resolve()}:{attribute}"})

    def make(self, group: str, **defaults: Any) -> Any:
        """Find and configure it.

        Raises InputError for an unknown name, an unknown setting (`field` is the setting), or a value of the wrong type.
        """
        found = registry.find(group, self.name)
        settings = {**defaults, **self.settings}
        if not isinstance(found, type):
            return registry.make(group, self.name, **settings)
        known = _parameters(found)
        checked = {}
        for name, value in settings.items():
            if name not in known:
                raise UnknownNameError.of(f"setting of {group.removesuffix('s')} '{self.name}':", name, known, field=name)
            try:
                checked[name] = TypeAdapter(known[name]).validate_python(value, strict=True)
            except ValidationError as error:
                raise InputError(error.errors()[0]["msg"], field=name, remedy=f"instead of {value!r}") from None
        return registry.make(group, self.name, **checked)

    def identity(self, group: str) -> dict[str, Any]:
        """What a result depends on: name, settings, and the bytes of the file where it is no part of Poolwise."""
        found = registry.find(group, self.name)
        content: dict[str, Any] = {"name": self.name, "settings": self.settings}
        module = inspect.getmodule(found if isinstance(found, type) else type(found))
        if module is not None and module.__name__.partition(".")[0] != "poolwise" and module.__file__ is not None:
            digest = hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()
            content |= {"name": self.name.rpartition(":")[2], "source": digest}
        return content

    def __str__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in sorted(self.settings.items()))
        return f"{self.name}({settings})" if settings else self.name


def _parameters(found: type) -> dict[str, Any]:
    """Parameter -> type of a configuration class."""
    hints = get_type_hints(found) if hasattr(found, "__dataclass_fields__") else {}
    signature = inspect.signature(found)
    return {name: hints.get(name, Any) for name in signature.parameters}
