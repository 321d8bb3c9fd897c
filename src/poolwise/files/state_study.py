"""The study beside a state: what two queue orders would do from now on, for `poolwise run FOLDER`."""

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
    """Tables of a study of a state that is written to a folder.

    The scheduler that decides there is what runs today, where it is known; what has no order to vary is studied as it is.
    """
    now, whole = iso_time(state.jobs.epoch + state.now)[:19] + "Z", "nodes" in state.machine.resources
    pools = whole and len(state.machine.of_kind(Kind.POOL)) > 0
    title = f"What would another order do from {now} on?"
    scheduler: Any = {"backfill": "easy", "placement": "racks" if whole else "first_fit"}
    more: dict[str, Any] = {"vary": {"scheduler.order": ORDERS}}
    measure: dict[str, Any] = {"warm_up": 0}
    if state.scheduler:
        scheduler = _beside(state.scheduler, folder)
        more["today"] = {"name": "as it is decided there", "scheduler": scheduler}
        named = Document.read(catalog.resolve("schedulers", state.scheduler)).tables
        if "order" not in named:
            title, more = f"What happens from {now} on?", {}
        if named.get("kind", "list") != "list":
            measure["baseline"] = False  # it is a list scheduler, which may not know what these jobs ask for
    return {
        "version": 1,
        "title": title,
        "machine": MACHINE,
        "workload": {"state": STATE, "unsaid": "1 h"},
        "scheduler": scheduler,
        "performance": {"model": "remote_memory" if pools else "ideal"},
        "measure": measure,
        **more,
    }


def _beside(scheduler: str, folder: Path) -> str:
    """How a scheduler file is named in a folder."""
    return scheduler if scheduler.startswith(CATALOG) else Path(os.path.relpath(scheduler, folder)).as_posix()
