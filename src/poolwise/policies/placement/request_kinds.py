"""Jobs that ask for the same are asked about once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import JobTable, Machine
from poolwise.model.eligibility import eligible_sets
from poolwise.model.table_columns import Column

FEWEST = 64
"""Jobs below which each is asked about."""


def request_kinds(machine: Machine, table: JobTable) -> IntArray:
    """(n_job,) numbers, the same for jobs that ask for the same and may run on the same nodes."""
    names = tuple(sorted(table.requests))

    def columns(table: JobTable, rows: slice) -> Sequence[Column]:
        sets = eligible_sets(machine, table).of
        return [sets[rows], table.tasks[rows], table.nodes[rows], *(table.request(name)[rows] for name in names)]

    return table.kinds(("requests", names, bool(machine.node_sets), machine.partitions), columns).of


def once_a_kind(jobs: IntArray, numbers: Callable[[], IntArray], ask: Callable[[IntArray], BoolArray]) -> BoolArray:
    """(k,) answers for (k,) rows of the job table, the same for jobs of one kind: `ask` is given one of each.

    `numbers` gives the kinds, (n_job,) from 0 on. Of ten thousand jobs that wait few differ.
    """
    if len(jobs) < FEWEST:
        return ask(jobs)
    kinds = numbers()[jobs]
    one = np.full(int(kinds.max()) + 1, -1)
    one[kinds] = jobs
    there = one >= 0
    answers = np.zeros(len(one), dtype=np.bool_)
    answers[there] = ask(one[there])
    found: BoolArray = answers[kinds]
    return found
