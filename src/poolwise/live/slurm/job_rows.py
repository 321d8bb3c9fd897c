"""Job table of a live cluster: the rows of its jobs and the set of waiting jobs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.live.slurm.parsing import SlurmJob
from poolwise.model import Continuation, JobTable
from poolwise.quantities import parse

_PAIR = re.compile(r"(?<![\w=])(?P<key>[A-Za-z_]\w*)=(?P<value>[^\s,;]+)")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Request of a job in the units of the machine; schedulers treat jobs with equal requests alike."""

    tasks: int  # number of identical components on shared nodes; 1 if jobs take whole nodes
    limit: int  # time limit (ns)
    submit: int  # submission time (ns since 1970)
    user: int  # numeric user id
    amounts: Mapping[str, int]  # resource -> amount per task and node

    @classmethod
    def of(cls, gang: tuple[SlurmJob, ...], whole: bool, unit: int, devices: Collection[str]) -> JobRequest:
        """Read the request of a job, its memory (MiB) rounded up to a multiple of `unit`; raises InputError with the field."""
        requested = [_requested_amounts(job, whole, devices) for job in gang]
        first = gang[0]
        if whole:
            amounts = {name: max(part[name] for part in requested) for name in requested[0]}
            amounts["nodes"], tasks = sum(job.nodes for job in gang), 1
        else:
            if any(part != requested[0] for part in requested):
                raise InputError(
                    "components with different requests cannot be placed on shared nodes", field="het-job", remedy=_ALIKE
                )
            amounts, tasks = requested[0], len(gang)
        amounts["memory"] = -(-amounts["memory"] // unit) * unit
        return cls(tasks, first.limit, first.submit, first.user, amounts)


_ALIKE = "submit components with equal requests, or use a partition of whole nodes"


def _requested_amounts(job: SlurmJob, whole: bool, devices: Collection[str]) -> dict[str, int]:
    """Return the amounts per node of a component, and its number of nodes."""
    amounts = dict.fromkeys(devices, 0) | {"memory": 0}
    for pair in _PAIR.finditer(job.comment):
        key, value = pair["key"], pair["value"]
        if key not in amounts:
            continue
        try:
            amounts[key] = parse(value, "memory" if key == "memory" else "count")
        except ValueError as error:
            raise InputError(str(error), file=f"comment of job {job.name}", field=key, remedy="such as memory=96GiB") from None
    memory = -(-job.memory // max(job.nodes, 1))
    amounts["memory"] = amounts["memory"] or memory
    cores = {} if whole else {"cores": -(-job.cpus // max(job.nodes, 1))}
    return {"nodes": job.nodes, **cores, **amounts}


class JobRows:
    """Rows of jobs by name; a job that returns after it was withdrawn or has run gets a new row."""

    def __init__(self, resources: tuple[str, ...], epoch: int, continued: Continuation | None) -> None:
        empty = _column()
        columns = dict.fromkeys(resources, empty)
        self.table = JobTable(empty, empty, empty, empty, columns, {"user": empty}, draw=empty, name=[], epoch=epoch)
        self._continued, self._next = continued, 0 if continued is None else continued.next_draw
        self.waiting: dict[str, int] = {}  # name -> row
        self._requests: dict[int, JobRequest] = {}  # by row

    def append(self, name: str, request: JobRequest) -> int:
        """Append a job and return its row."""
        draw = None if self._continued is None else self._continued.draw(name)
        if draw is None:
            draw, self._next = self._next, self._next + 1
        more = JobTable(
            _column(int(name.partition("_")[0])),
            _column(request.submit - self.table.epoch),
            _column(request.limit),
            _column(request.tasks),
            {column: _column(request.amounts.get(column, 0)) for column in self.table.requests},
            {"user": _column(request.user)},
            draw=_column(draw),
            name=[name],
        )
        row = self.table.append(more)[0]
        self._requests[row] = request
        return row

    def request(self, name: str) -> JobRequest | None:
        """Return the request of a waiting job, None if it is not waiting."""
        return self._requests[self.waiting[name]] if name in self.waiting else None

    def recycle(self, running: Collection[int]) -> None:
        """Give rows of jobs that neither wait nor run to later jobs, once there are many."""
        if self.table.crowded(len(self.waiting) + len(running)):
            live = {*running, *self.waiting.values()}
            self.table = self.table.recycled(live)
            self._requests = {row: self._requests[row] for row in live}


def _column(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)
