"""`poolwise schema`: JSON Schema of the file formats, for editors and other programs."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import typer


class Format(StrEnum):
    """Files that have a schema."""

    MACHINE = "machine"
    SCHEDULER = "scheduler"
    STUDY = "study"


def schema(format: Format = typer.Argument(help="machine, scheduler or study.")) -> None:
    """Print the JSON Schema of machine, scheduler or study files."""
    from poolwise.cli.output import print_json

    print_json(schema_of(format))


def schema_of(format: Format) -> dict[str, Any]:
    """JSON Schema of a file format; a study's `machine` may be a machine in place."""
    from pydantic import BaseModel

    from poolwise.studies.machine_sections import MachineFile
    from poolwise.studies.study_file import SchedulerFile, StudyFile

    models: dict[Format, type[BaseModel]] = {
        Format.MACHINE: MachineFile,
        Format.SCHEDULER: SchedulerFile,
        Format.STUDY: StudyFile,
    }
    content: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    content.update(models[format].model_json_schema(by_alias=True))
    content["title"] = f"Poolwise {format.value} file"
    if format is Format.STUDY:
        machine = MachineFile.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        content["$defs"].update(machine.pop("$defs"))
        content["$defs"]["MachineFile"] = machine
        content["properties"]["machine"]["anyOf"] = [{"type": "string"}, {"$ref": "#/$defs/MachineFile"}]
    return content


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(schema)
