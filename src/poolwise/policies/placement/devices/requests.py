"""Validation of requests: a job must not run without a resource that it requests."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from poolwise.errors import InputError
from poolwise.model import Job, JobTable, Refusal


def foreign_request(job: Job, known: Collection[str]) -> Refusal | None:
    """Return the refusal of a job that requests a resource outside `known`, else None."""
    for name in job.table.requests:
        if name not in known and (amount := job.request(name)):
            return Refusal(f"requests {name}, which the machine does not have where jobs are placed", name, amount, 0)
    return None


def check_requests(
    jobs: JobTable, known: Collection[str], why: str = "the machine does not have where jobs are placed", remedy: str = ""
) -> None:
    """Raise InputError for the first job that requests a resource outside `known`; `why` completes "..., which"."""
    for name, amounts in jobs.requests.items():
        if name not in known and amounts.any():
            job = int(jobs.id[np.argmax(amounts > 0)])
            raise InputError(
                f"job {job} requests {name}, which {why}",
                field=name,
                remedy=remedy or f"request only: {', '.join(known)}",
            )
