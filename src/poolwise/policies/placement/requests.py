"""Validation of requests, and kinds of jobs: jobs with identical requests are evaluated once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Job, JobTable, Machine, Refusal
from poolwise.model.eligibility import eligible_sets
from poolwise.model.table_columns import Column


def foreign_request(job: Job, known_names: Collection[str]) -> Refusal | None:
    """Return the refusal of a job that requests a resource outside `known`, else None."""
    for name in job.table.requests:
        if name not in known_names and (amount := job.request(name)):
            return Refusal(
                f"requests {name}, which the machine does not have on the nodes where jobs are placed", name, amount, 0
            )
    return None


def check_requests(
    jobs: JobTable,
    known_names: Collection[str],
    why: str = "the machine does not have on the nodes where jobs are placed",
    remedy: str = "",
) -> None:
    """Raise InputError for the first job that requests a resource outside `known`; `why` ends the message after "which"."""
    for name, amounts in jobs.requests.items():
        if name not in known_names and amounts.any():
            job = int(jobs.id[np.argmax(amounts > 0)])
            raise InputError(
                f"job {job} requests {name}, which {why}",
                field=name,
                remedy=remedy or f"request only: {', '.join(known_names)}",
            )


MIN_JOBS = 64
"""Number of jobs below which each job is evaluated by itself."""


def request_kinds(machine: Machine, table: JobTable) -> IntArray:
    """Return a kind for each job, (n_job,), equal for jobs with the same requests and the same eligible nodes."""
    names = tuple(sorted(table.requests))

    def columns(table: JobTable, rows: slice) -> Sequence[Column]:
        sets = eligible_sets(machine, table).of
        return [sets[rows], table.tasks[rows], table.nodes[rows], *(table.request(name)[rows] for name in names)]

    return table.kinds(("requests", names, bool(machine.node_sets), machine.partitions), columns).of


def once_per_kind(jobs: IntArray, kinds_of: Callable[[], IntArray], evaluate: Callable[[IntArray], BoolArray]) -> BoolArray:
    """Return an answer for each of some rows of the job table, (k,), calling `evaluate` with only one job of each kind.

    `kinds_of` returns the kinds, (n_job,), counted from 0. Even ten thousand waiting jobs are of only a few kinds.
    """
    if len(jobs) < MIN_JOBS:
        return evaluate(jobs)
    kinds = kinds_of()[jobs]
    job_of_kind = np.full(int(kinds.max()) + 1, -1)
    job_of_kind[kinds] = jobs
    present = job_of_kind >= 0
    answers = np.zeros(len(job_of_kind), dtype=np.bool_)
    answers[present] = evaluate(job_of_kind[present])
    return answers[kinds]
