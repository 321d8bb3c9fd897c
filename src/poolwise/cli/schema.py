"""`poolwise schema`: JSON Schema of the file formats, for editors and other programs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from poolwise.cli.examples import examples

if TYPE_CHECKING:
    from pydantic import BaseModel


class SchemaKind(StrEnum):
    """Files that have a schema."""

    MACHINE = "machine"
    SCHEDULER = "scheduler"
    STUDY = "study"
    PLAN = "plan"
    SEARCH = "search"
    POWER = "power"
    PRICES = "prices"


def schema(format: SchemaKind = typer.Argument(help="Kind of file.")) -> None:
    """Print the JSON Schema of a kind of file."""
    from poolwise.cli.output import print_json

    print_json(schema_of(format))


def schema_of(format: SchemaKind) -> dict[str, Any]:
    """JSON Schema of a file format; the `machine` of a study or plan may be a machine in place."""
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
        _open_machine(content, content.get("$defs", {}))
    else:  # sections of one name in files of several kinds get names of their own
        refs, whole = models_json_schema([(model, "validation") for model in models[format]], by_alias=True)
        content["$defs"] = whole["$defs"]
        content["anyOf"] = list(refs.values())
        for ref in content["anyOf"]:
            _open_machine(content["$defs"][ref["$ref"].rpartition("/")[2]], content["$defs"])
    content["title"] = f"Poolwise {format.value} file"
    return content


def _open_machine(file: dict[str, Any], sections: dict[str, Any]) -> None:
    """Add the schema of a machine in place where a file has a machine."""
    from poolwise.files.machine_sections import MachineFile

    if "machine" in file["properties"]:
        machine = MachineFile.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        sections.update(machine.pop("$defs"))
        sections["MachineFile"] = machine
        sections["MachineForm"] = {
            "description": "a machine in another form (`poolwise list machine_formats`), its settings beside the name",
            "type": "object",
            "properties": {"version": {"const": 1}, "format": {"type": "string"}, "name": {"type": "string"}},
            "required": ["version", "format"],
        }
        forms = [{"$ref": "#/$defs/MachineFile"}, {"$ref": "#/$defs/MachineForm"}]
        file["properties"]["machine"]["anyOf"] = [{"type": "string"}, *forms]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise schema machine"))(schema)
