"""Measured memory use over time, read from a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poolwise.errors import InputError
from poolwise.model import MemoryUse, Workload
from poolwise.performance.csv_table import number, table_rows
from poolwise.quantities import SECOND, format_count
from poolwise.registry import InputFile, register
from poolwise.traces.memory import LARGEST
from poolwise.traces.memory_use.source import MemoryUseSource, with_overestimates
from poolwise.traces.text_files import read_text

COLUMNS = {"job": 2.0**53, "seconds": 9e9, "memory": float(LARGEST)}
"""Column -> largest accepted number."""


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

    file: InputFile
    seed: int = 0
    overestimate: float = 0.0
    overestimating: float = 1.0

    def applied(self, workload: Workload) -> Workload:
        """Read the file; errors state the line."""
        steps, ids = read_steps(Path(self.file)), workload.id.tolist()
        offset, work, memory = [0], list[int](), list[int]()
        for job, most in zip(ids, workload.memory.tolist(), strict=True):
            for at, used in steps.get(job, [(0, most)]):
                work.append(at)
                memory.append(used)
            offset.append(len(work))
        use = MemoryUse(*(np.array(column, dtype=np.int64) for column in (offset, work, memory)))
        missing, others = len(set(ids) - steps.keys()), len(steps.keys() - set(ids))
        file, notes = Path(self.file).name, list[str]()
        if missing:
            notes.append(
                f"{missing:,} of {format_count(len(ids), 'job')} {'has' if missing == 1 else 'have'} no rows in {file}"
            )
        if others:
            notes.append(f"{format_count(others, 'job')} of {file} {'is' if others == 1 else 'are'} not in the workload")
        requested = with_overestimates(workload, self.seed, self.overestimate, self.overestimating)
        requests = {**workload.requests, "memory": requested} if "memory" in workload.requests else workload.requests
        return replace(workload, requests=requests, memory_use=use, notes=(*workload.notes, *notes))


def read_steps(file: Path) -> dict[int, list[tuple[int, int]]]:
    """Return job -> ordered (ns, MiB) steps; raise InputError with file, line and column."""
    steps_of_job: dict[int, list[tuple[int, int]]] = {}
    for line, row in table_rows(read_text(file).splitlines(), file, tuple(COLUMNS)):
        job, seconds, memory = (number(row[name], file, line, name, 0, most) for name, most in COLUMNS.items())
        if job != int(job):
            raise InputError(f"'{row['job']}' is not a job id", file=file, line=line, field="job")
        steps, at = steps_of_job.setdefault(int(job), []), math.ceil(seconds * SECOND)
        if (not steps and at) or (steps and at <= steps[-1][0]):
            problem = f"the rows of job {int(job)} must begin at 0 seconds and ascend"
            raise InputError(problem, file=file, line=line, field="seconds", remedy="sort the rows by job and seconds")
        steps.append((at, math.ceil(memory)))
    return steps_of_job
