"""Requests that no part of a machine can meet: a job must not run without what it asks for."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from poolwise.errors import InputError
from poolwise.model import Job, JobTable, Refusal


def foreign_request(job: Job, known: Collection[str]) -> Refusal | None:
    """Refusal of a job that asks for a resource which is not among those that are known."""
    for name in job.table.requests:
        if name not in known and (amount := job.request(name)):
            return Refusal(f"asks for {name}, of which the machine has none where jobs are placed", name, amount, 0)
    return None


def check_requests(
    jobs: JobTable, known: Collection[str], why: str = "the machine has none where jobs are placed", remedy: str = ""
) -> None:
    """Raise InputError for the first job that asks for something else, of which `why` says what becomes (`foreign_request`)."""
    for name, amounts in jobs.requests.items():
        if name not in known and amounts.any():
            job = int(jobs.id[np.argmax(amounts > 0)])
            raise InputError(
                f"job {job} asks for {name}, of which {why}",
                field=name,
                remedy=remedy or f"there is: {', '.join(known)}",
            )
