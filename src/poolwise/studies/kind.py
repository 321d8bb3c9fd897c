"""Which of the formats a document is written in."""

from __future__ import annotations

from typing import Literal

from poolwise.errors import InputError
from poolwise.studies.document import Document
from poolwise.studies.machine_sections import MachineFile
from poolwise.studies.study_file import SchedulerSection, StudyFile

Kind = Literal["machine", "study", "scheduler"]


def kind_of(document: Document) -> Kind:
    """Say what a document looks like, by the keys that it has; raises InputError if like nothing that is known."""
    keys = document.tables.keys() - {"version", "title", "name"}
    if StudyFile.model_fields.keys() & keys:
        return "study"
    if MachineFile.model_fields.keys() & keys:
        return "machine"
    if SchedulerSection.model_fields.keys() & keys:
        return "scheduler"
    raise InputError(
        "neither a machine, a study nor a scheduler",
        file=document.file,
        remedy="a machine has [[node]] and [[rack]], a study has machine, [workload] and [scheduler], a scheduler has an order",
    )
