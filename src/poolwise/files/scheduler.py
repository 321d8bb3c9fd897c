"""Scheduler files: TOML that configures the order, placement and start of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from poolwise import registry
from poolwise.errors import Problems
from poolwise.files.component import Component
from poolwise.files.document import Document
from poolwise.files.factory import PARTS, check_parts, scheduler_content, scheduler_of
from poolwise.files.fields import check_version, validate
from poolwise.files.study import SchedulerFile, SchedulerSection

Section = TypeVar("Section", bound=SchedulerSection)


def load_scheduler(file: Path) -> SchedulerFile:
    """Read a scheduler file; raises InputError with file, line, field and remedy."""
    document = Document.read(file)
    check_version(document)
    return resolve(validate(SchedulerFile, document), document)


def resolve(section: Section, document: Document, path: tuple[str, ...] = ()) -> Section:
    """Resolve every name in the section at `path` of a document; raises InputError with file, line and field.

    "file.py:Name" and other file references are relative to the file that contains them.
    """
    folders = {key: document.location((*path, key))[0].parent for key in (*PARTS, "settings")}
    named = {key: getattr(section, key) for key in PARTS}
    found: dict[str, Any] = {}
    problems = Problems()
    for key, component in named.items():
        if component is None:
            continue
        with problems.attempt(), document.errors_at(*path, key):
            found[key] = component.resolve_paths(folders[key])
            made = found[key].make(PARTS[key])
            if PARTS[key] in ("orders", "backfills") and hasattr(made, "open"):
                made.open()  # reads its files, such as slurm.conf: report errors in them before the run starts
    with problems.attempt(), document.errors_at(*path, "kind"):
        registry.find("schedulers", section.kind)
    problems.finish()
    with document.errors_at(*path):
        check_parts(section)
    with document.errors_at(*path, "settings"):
        found["settings"] = Component.of(section.kind, section.settings).resolve_paths(folders["settings"]).settings
    whole = section.model_copy(update=found)
    with document.errors_at(*path, "settings"):
        scheduler_of(whole)
        scheduler_content(whole)
    return whole
