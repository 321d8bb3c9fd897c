"""Licenses: resources that Slurm counts for the whole cluster, and that a job holds while it runs.

A job requests licenses in its attribute `license/NAME`; the placement does not see them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model.job_table import JobTable
from poolwise.model.machine import Machine
from poolwise.model.placement import Refusal
from poolwise.model.run import Run

LICENSE = "license/"
"""Prefix of the attributes with which jobs request licenses, as in the resources (TRES) of Slurm."""


def license_requests(machine: Machine, table: JobTable) -> dict[str, IntArray]:
    """Return name -> (n_job,) requested licenses, for the licenses of the machine that any job requests.

    The result is empty on a machine without licenses, which does not limit them. Raises InputError for unknown names, and for
    numbers that are negative or not integers.

    Examples
    --------
    >>> import dataclasses, poolwise
    >>> from poolwise.model.licenses import license_requests
    >>> machine = dataclasses.replace(poolwise.Machine.flat(4), licenses={"matlab": 2})
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min", attributes={"license/matlab": [1, 0]})
    >>> license_requests(machine, workload.table)
    {'matlab': array([1, 0])}
    """
    requested = dict[str, IntArray]()
    for column in table.attributes if machine.licenses else ():
        name = column.removeprefix(LICENSE)
        if name == column:
            continue
        values = table.attributes[column]
        if values.dtype.kind not in "iuf":
            raise InputError("licenses are not numbers", field=column, remedy="write whole numbers")
        counts = np.nan_to_num(values).astype(np.int64)  # empty cells of tables are NaN
        if int(counts.min(initial=0)) < 0 or (counts != np.nan_to_num(values)).any():
            raise InputError("a number of licenses is negative or not an integer", field=column, remedy="write whole numbers")
        if counts.any():
            if name not in machine.licenses:
                problem = UnknownNameError.of("license", name, machine.licenses)
                text = f"{problem.message}, requested by job {table.id[np.flatnonzero(counts)[0]]}"
                raise UnknownNameError(text, field=column, remedy=problem.remedy)
            requested[name] = counts
    return requested


def exceeded_licenses(machine: Machine, table: JobTable, job: int) -> Refusal | None:
    """Return a license of which a job requests more than the machine has; None if there is none."""
    for name, counts in license_requests(machine, table).items():
        needed, most = int(counts[job]), machine.licenses[name]
        if needed > most:
            return Refusal(f"requests {needed} licenses '{name}', but the machine has {most}", LICENSE + name, needed, most)
    return None


class LicenseUse:
    """Licenses that running jobs hold; a job holds its licenses once, however many of its tasks run."""

    def __init__(self, machine: Machine, table: JobTable, runs: Iterable[Run]) -> None:
        self.machine, self.requests = machine, license_requests(machine, table)
        self.jobs = {run.job for run in runs} if self.requests else set[int]()
        self.used = Counter[str]()
        for name, counts in self.requests.items():
            self.used[name] = sum(int(counts[job]) for job in self.jobs)

    def lacking(self, job: int) -> Refusal | None:
        """Return the first license of which a waiting job needs more than are free; None if there is none."""
        if job in self.jobs:
            return None
        for name, counts in self.requests.items():
            needed, free = int(counts[job]), max(self.machine.licenses[name] - self.used[name], 0)
            if needed > free:
                most = self.machine.licenses[name]
                return Refusal(f"it needs {needed} of the {most} licenses '{name}'", LICENSE + name, needed, free)
        return None
