"""`poolwise schema`: print the JSON Schema of a file format, for editors and other programs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from poolwise.cli.app import app
from poolwise.cli.examples import command
from poolwise.cli.output import print_object

if TYPE_CHECKING:
    from pydantic import BaseModel


class SchemaKind(StrEnum):
    """Kinds of files with a schema."""

    MACHINE = "machine"
    SCHEDULER = "scheduler"
    STUDY = "study"
    PLAN = "plan"
    SEARCH = "search"
    POWER = "power"
    PRICES = "prices"


_KIND = f"Kind of file: {', '.join(SchemaKind)}."


@command(app, "poolwise schema machine")
def schema(format: SchemaKind = typer.Argument(metavar="KIND", help=_KIND)) -> None:
    """Print the JSON Schema of a file format."""
    print_object(schema_of(format))


def schema_of(format: SchemaKind) -> dict[str, Any]:
    """Return the JSON Schema of a file format; the `machine` of a study or plan may be an inline machine."""
    from pydantic.json_schema import models_json_schema

    from poolwise import registry
    from poolwise.files.costs import PowerFile, PriceFile
    from poolwise.files.machine_sections import MachineFile
    from poolwise.files.study import SchedulerFile, StudyFile
    from poolwise.search.file import SearchFile

    models: dict[SchemaKind, list[type[BaseModel]]] = {
        SchemaKind.MACHINE: [MachineFile],
        SchemaKind.SCHEDULER: [SchedulerFile],
        SchemaKind.STUDY: [StudyFile],
        SchemaKind.PLAN: [registry.find("plans", kind).file for kind in registry.names("plans")],
        SchemaKind.SEARCH: [SearchFile],
        SchemaKind.POWER: [PowerFile],
        SchemaKind.PRICES: [PriceFile],
    }
    content: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    if len(models[format]) == 1:
        content.update(models[format][0].model_json_schema(by_alias=True))
        _add_inline_machine(content, content.get("$defs", {}))
    else:  # sections that share a name across kinds get distinct names
        refs, whole = models_json_schema([(model, "validation") for model in models[format]], by_alias=True)
        content["$defs"] = whole["$defs"]
        content["anyOf"] = list(refs.values())
        for ref in content["anyOf"]:
            _add_inline_machine(content["$defs"][ref["$ref"].rpartition("/")[2]], content["$defs"])
    content["title"] = f"Poolwise {format.value} file"
    return content


def _add_inline_machine(file: dict[str, Any], sections: dict[str, Any]) -> None:
    """Add the schema of an inline machine if the file has a machine."""
    from poolwise.files.machine_sections import MachineFile

    if "machine" in file["properties"]:
        machine = MachineFile.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        sections.update(machine.pop("$defs"))
        sections["MachineFile"] = machine
        sections["MachineForm"] = {
            "description": "a machine in another format (`poolwise list machine_formats`), with the settings of that format",
            "type": "object",
            "properties": {"version": {"const": 1}, "format": {"type": "string"}, "name": {"type": "string"}},
            "required": ["version", "format"],
        }
        forms = [{"$ref": "#/$defs/MachineFile"}, {"$ref": "#/$defs/MachineForm"}]
        file["properties"]["machine"]["anyOf"] = [{"type": "string"}, *forms]
