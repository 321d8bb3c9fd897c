"""Conversion of logs with columns or units of their own into plain Standard Workload Format, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from poolwise.traces.swf_rows import FIELDS, REQUESTED_MEMORY, USED_MEMORY, SwfRows, read_rows, write_swf_rows


def to_swf(
    source: Path,
    target: Path,
    *,
    extra_columns: int = 0,
    memory_bytes_per_job: bool = False,
    comments: Sequence[str] = (),
) -> tuple[int, dict[str, int]]:
    """Write the rows of a log as they stand, 18 fields each, after its header, `comments` and a note of what was changed.

    Parameters
    ----------
    source, target
        Files; the target is gzip if its name ends in ".gz".
    extra_columns
        Columns beyond the 18th that every row has; they are left out.
    memory_bytes_per_job
        Field 10 counts bytes per job and field 7 means nothing: turn them into KB per processor and -1.
    comments
        More header lines, without the ";".

    Returns
    -------
    rows
        How many were written: all of them.
    changed
        What was changed -> in how many rows.
    """
    log = read_rows(source, extra_columns)
    changed: dict[str, int] = {}
    notes: list[str] = []
    if extra_columns:
        first, last = len(FIELDS) + 1, len(FIELDS) + extra_columns
        what = f"columns {first} to {last} left out" if extra_columns > 1 else f"column {first} left out"
        changed[what] = len(log)
        notes.append(what)
    if memory_bytes_per_job:
        log, memory = with_memory_per_processor(log)
        changed.update(memory)
        notes.append("field 10 turned from bytes per job into KB per processor, rounded up; field 7 set to -1 (unknown)")
    said = [f" {comment}" for comment in comments] + [f" Note: converted by Poolwise: {note}" for note in notes]
    write_swf_rows(replace(log, comments=(*log.comments, *said)), target)
    return len(log), changed


def with_memory_per_processor(log: SwfRows) -> tuple[SwfRows, dict[str, int]]:
    """Turn a field 10 in bytes per job into KB per processor, rounded up; field 7 becomes unknown.

    Returns
    -------
    log
        The converted rows.
    changed
        What was changed -> in how many rows.
    """
    asked, processors = log.values[:, REQUESTED_MEMORY], log.processors
    known = (asked > 0) & (processors > 0)
    values = log.values.copy()
    values[:, USED_MEMORY] = -1
    values[:, REQUESTED_MEMORY] = np.where(known, np.ceil(asked / 1024 / np.maximum(processors, 1)), -1)
    counts = {
        "requested memory turned from bytes per job into KB per processor": int(known.sum()),
        "requested memory set to unknown, since the processors are": int(((asked > 0) & ~known).sum()),
        "used memory set to unknown": int((log.values[:, USED_MEMORY] != -1).sum()),
    }
    return replace(log, values=values), {what: count for what, count in counts.items() if count}
