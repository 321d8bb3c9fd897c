"""Row-by-row conversion of logs with nonstandard columns or units to plain Standard Workload Format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from poolwise.traces.selection import occurring
from poolwise.traces.swf_rows import FIELDS, REQUESTED_MEMORY, USED_MEMORY, SwfRows, read_rows, write_swf_rows


def to_swf(
    source: Path,
    target: Path,
    *,
    extra_columns: int = 0,
    memory_bytes_per_job: bool = False,
    comments: Sequence[str] = (),
) -> tuple[int, dict[str, int]]:
    """Write the rows of a log, 18 fields each, after its header, `comments` and notes on the changes.

    The target is gzip if its name ends in ".gz". The `extra_columns` after the 18th are dropped. With `memory_bytes_per_job`,
    field 10 is converted from bytes per job to KB per processor, and field 7, which then has no meaning, is set to -1.

    Returns the number of rows, and change -> number of rows.
    """
    log = read_rows(source, extra_columns)
    changed: dict[str, int] = {}
    notes: list[str] = []
    if extra_columns:
        first, last = len(FIELDS) + 1, len(FIELDS) + extra_columns
        change = f"columns {first} to {last} left out" if extra_columns > 1 else f"column {first} left out"
        changed[change] = len(log)
        notes.append(change)
    if memory_bytes_per_job:
        log, memory = with_memory_per_processor(log)
        changed.update(memory)
        notes.append("field 10 turned from bytes per job into KB per processor, rounded up; field 7 set to -1 (unknown)")
    header = [f" {comment}" for comment in comments] + [f" Note: converted by Poolwise: {note}" for note in notes]
    write_swf_rows(replace(log, comments=(*log.comments, *header)), target)
    return len(log), changed


def with_memory_per_processor(log: SwfRows) -> tuple[SwfRows, dict[str, int]]:
    """Convert field 10 from bytes per job to KB per processor, rounded up, and set field 7 to unknown; count the changes."""
    requested, processors = log.values[:, REQUESTED_MEMORY], log.processors
    known = (requested > 0) & (processors > 0)
    values = log.values.copy()
    values[:, USED_MEMORY] = -1
    values[:, REQUESTED_MEMORY] = np.where(known, np.ceil(requested / 1024 / np.maximum(processors, 1)), -1)
    counts = {
        "requested memory converted from bytes per job to KB per processor": int(known.sum()),
        "requested memory set to unknown, because the processors are unknown": int(((requested > 0) & ~known).sum()),
        "used memory set to unknown": int((log.values[:, USED_MEMORY] != -1).sum()),
    }
    return replace(log, values=values), occurring(counts)
