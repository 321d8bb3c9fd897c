"""Scheduler files: TOML that configures the order, placement and start of jobs."""

from __future__ import annotations

from pathlib import Path

from poolwise.errors import errors_below
from poolwise.files.document import Document
from poolwise.files.factory import check_parts, scheduler_content, scheduler_of
from poolwise.files.study import SchedulerFile, SchedulerSection
from poolwise.files.validation import validate


def load_scheduler(file: Path) -> SchedulerFile:
    """Read a scheduler file; raises InputError with file, line, field and remedy."""
    document = Document.read(file)
    section = validate(SchedulerFile, document)
    with document.errors_at():
        check_composition(section)
    return section


def check_composition(section: SchedulerSection) -> None:
    """Check that the parts of a valid section form a scheduler; raises InputError with its path in the section."""
    check_parts(section)
    with errors_below("settings"):
        scheduler_of(section)
        scheduler_content(section)
