"""Kinds of jobs: jobs with identical requests are evaluated once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import JobTable, Machine
from poolwise.model.eligibility import eligible_sets
from poolwise.model.table_columns import Column

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
    """Return (k,) answers for (k,) rows of the job table, calling `evaluate` with only one job of each kind.

    `kinds_of` returns the kinds, (n_job,), counted from 0. Among ten thousand waiting jobs few kinds occur.
    """
    if len(jobs) < MIN_JOBS:
        return evaluate(jobs)
    kinds = kinds_of()[jobs]
    one = np.full(int(kinds.max()) + 1, -1)
    one[kinds] = jobs
    present = one >= 0
    answers = np.zeros(len(one), dtype=np.bool_)
    answers[present] = evaluate(one[present])
    found: BoolArray = answers[kinds]
    return found
