"""Detection of a document's file format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from poolwise.errors import InputError
from poolwise.files.costs import PowerSection, PriceSection
from poolwise.files.document import Document
from poolwise.files.fields import Section
from poolwise.files.machine_sections import MachineFile
from poolwise.files.study import SchedulerSection, StudyFile

FileKind = Literal["machine", "study", "scheduler", "plan", "search", "power", "prices"]
FOLDERS: Mapping[FileKind, str] = {
    "machine": "machines",
    "scheduler": "schedulers",
    "study": "studies",
    "plan": "plans",
    "search": "searches",
    "power": "power",
    "prices": "prices",
}
"""Kind of file -> catalog folder."""
_BY_KEYS: Mapping[FileKind, type[Section]] = {  # the first kind that has one of a document's keys
    "study": StudyFile,
    "machine": MachineFile,
    "power": PowerSection,
    "prices": PriceSection,
    "scheduler": SchedulerSection,
}


def kind_of_file(document: Document) -> FileKind:
    """Detect the kind of a document from its keys; raises InputError if no kind matches."""
    keys = document.tables.keys() - {"version", "title", "name"}
    if "plan" in keys:
        return "plan"
    if "space" in keys:
        return "search"
    if "format" in keys:
        return "machine"
    for kind, section in _BY_KEYS.items():
        if section.model_fields.keys() & keys:
            return kind
    raise InputError(
        "not a machine, study, plan, search, scheduler, power table or price list",
        file=document.file,
        remedy="a machine has [[node]] and [[rack]], a study has machine, [workload] and [scheduler], a plan has [plan], "
        "a search has [space], a scheduler has an order, a power table has [idle_watts], a price list has [price]",
    )
