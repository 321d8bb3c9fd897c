"""Scheduler files: TOML that says how jobs are ordered, placed and started."""

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
    """Read a scheduler file; raises InputError naming file, line, field and remedy."""
    document = Document.read(file)
    check_version(document)
    return resolve(validate(SchedulerFile, document), document)


def resolve(section: Section, document: Document, path: tuple[str, ...] = ()) -> Section:
    """Find everything that the section at `path` of a document names; raises InputError with file, line and field.

    A "file.py:Name" or another file is found beside the file that names it.
    """
    folders = {key: document.place((*path, key))[0].parent for key in (*PARTS, "settings")}
    named = {key: getattr(section, key) for key in PARTS}
    found: dict[str, Any] = {}
    problems = Problems()
    for key, choice in named.items():
        if choice is None:
            continue
        with problems.attempt(), document.placing(*path, key):
            found[key] = choice.beside(folders[key])
            made = found[key].make(PARTS[key])
            if PARTS[key] in ("orders", "backfills") and hasattr(made, "open"):
                made.open()  # reads its files, such as slurm.conf: what is wrong there is told before anything runs
    with problems.attempt(), document.placing(*path, "kind"):
        registry.find("schedulers", section.kind)
    problems.finish()
    with document.placing(*path):
        check_parts(section)
    with document.placing(*path, "settings"):
        found["settings"] = Component.of(section.kind, section.settings).beside(folders["settings"]).settings
    whole = section.model_copy(update=found)
    with document.placing(*path, "settings"):
        scheduler_of(whole)
        scheduler_content(whole)
    return whole
