"""Default study of a state for `poolwise run FOLDER`: compares two queue orders from the snapshot onwards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from poolwise import catalog
from poolwise.files.document import Document
from poolwise.files.state import MACHINE, STATE, iso_time
from poolwise.files.study import CATALOG
from poolwise.model import Kind
from poolwise.model.state import MachineState

ORDERS = ["fcfs", "sjf"]


def study_of(state: MachineState, folder: Path) -> dict[str, Any]:
    """Return the tables of a study of a state that will be written to a folder.

    The scheduler in use at the source, if known, becomes the study's `today`. A scheduler without an order is run unchanged.
    """
    now, whole = iso_time(state.jobs.epoch + state.now)[:19] + "Z", "nodes" in state.machine.resources
    pools = whole and len(state.machine.of_kind(Kind.POOL)) > 0
    title = f"How would another queue order perform from {now}?"
    scheduler: Any = {"backfill": "easy", "placement": "racks" if whole else "first_fit"}
    more: dict[str, Any] = {"vary": {"scheduler.order": ORDERS}}
    measure: dict[str, Any] = {"warm_up": 0}
    if state.scheduler:
        scheduler = _relative_reference(state.scheduler, folder)
        more["today"] = {"name": "current scheduler", "scheduler": scheduler}
        named = Document.read(catalog.resolve("schedulers", state.scheduler)).tables
        if "order" not in named:
            title, more = f"What happens from {now}?", {}
        if named.get("kind", "list") != "list":
            measure["baseline"] = False  # the baseline is a list scheduler, which may not support what these jobs request
    return {
        "version": 1,
        "title": title,
        "machine": MACHINE,
        "workload": {"state": STATE, "default_runtime": "1 h"},
        "scheduler": scheduler,
        "performance": {"model": "remote_memory" if pools else "ideal"},
        "measure": measure,
        **more,
    }


def _relative_reference(scheduler: str, folder: Path) -> str:
    """Return a reference to a scheduler file from a folder."""
    return scheduler if scheduler.startswith(CATALOG) else Path(os.path.relpath(scheduler, folder)).as_posix()
