"""Measured memory use over time, read from a file."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poolwise.errors import InputError
from poolwise.model import MemoryUse, Workload
from poolwise.registry import register
from poolwise.traces.memory import LARGEST
from poolwise.traces.memory_use.source import MemoryUseSource, with_overestimates
from poolwise.traces.text_files import read_text
from poolwise.units import SECOND

COLUMNS = ("job", "seconds", "memory")


@register("memory_uses", "table")
@dataclass(frozen=True)
class UseTable(MemoryUseSource):
    """Memory use from a CSV file with the columns job, seconds and memory (MiB per node, from that time since the job's start).

    Seconds refer to a run at full speed; a run that is slowed down reaches them later. Each job begins at 0, and a row applies
    until the next row of the job. Jobs without rows always use the trace's memory; rows of unknown jobs are ignored.

    Parameters
    ----------
    file
        The file, plain or gzip; relative to the study.
    seed
        Random seed that selects the jobs whose users overestimate; a study sets its own.
    overestimate, overestimating
        Excess of memory requests over the trace's memory, and the share of the users that overestimate.
    """

    file: str
    seed: int = 0
    overestimate: float = 0.0
    overestimating: float = 1.0

    def applied(self, workload: Workload) -> Workload:
        """Read the file; errors state its lines."""
        steps, known = read_steps(Path(self.file)), workload.id.tolist()
        offset, work, memory = [0], list[int](), list[int]()
        for job, most in zip(known, workload.memory.tolist(), strict=True):
            for at, used in steps.get(job, [(0, most)]):
                work.append(at)
                memory.append(used)
            offset.append(len(work))
        use = MemoryUse(*(np.array(column, dtype=np.int64) for column in (offset, work, memory)))
        missing, others = len(set(known) - steps.keys()), len(steps.keys() - set(known))
        notes = [f"{missing:,} of {len(known):,} jobs have no rows in {Path(self.file).name}"] if missing else []
        notes += [f"{others:,} jobs of {Path(self.file).name} are not in the workload"] if others else []
        requested = with_overestimates(workload, self.seed, self.overestimate, self.overestimating)
        requests = {**workload.requests, "memory": requested} if "memory" in workload.requests else workload.requests
        return replace(workload, requests=requests, memory_use=use, notes=(*workload.notes, *notes))


def read_steps(file: Path) -> dict[int, list[tuple[int, int]]]:
    """Return job -> ordered (ns, MiB) steps; raise InputError with file, line and column."""
    rows = csv.DictReader(read_text(file).splitlines())
    for name in COLUMNS:
        if name not in (rows.fieldnames or ()):
            raise InputError(f"no column '{name}'", file=file, line=1, field=name, remedy=f"columns: {', '.join(COLUMNS)}")
    found: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        job, seconds, memory = (_number(row[name], file, rows.line_num, name) for name in COLUMNS)
        if job != int(job):
            raise InputError(f"'{row['job']}' is not a job id", file=file, line=rows.line_num, field="job")
        steps, at = found.setdefault(int(job), []), math.ceil(seconds * SECOND)
        if (not steps and at) or (steps and at <= steps[-1][0]):
            problem = f"the rows of job {int(job)} must begin at 0 seconds and ascend"
            raise InputError(problem, file=file, line=rows.line_num, field="seconds", remedy="sort the rows by job and seconds")
        steps.append((at, math.ceil(memory)))
    return found


def _number(text: str | None, file: Path, line: int, field: str) -> float:
    """Read a cell that contains a number from 0 to the largest that its unit allows."""
    most = {"job": 2.0**53, "seconds": 9e9, "memory": float(LARGEST)}[field]
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        problem = f"'{text or ''}' is not a number from 0 to {most:g}"
        raise InputError(problem, file=file, line=line, field=field, remedy="correct it")
    return value
