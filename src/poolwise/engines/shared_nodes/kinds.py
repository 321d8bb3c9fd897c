"""Kinds of jobs that ask shared nodes for the same, and the dimensions in which they ask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model import Workload
from poolwise.model.eligibility import eligible_sets
from poolwise.policies.placement.nodes.layout import MEMORY, NodeLayout


@dataclass(frozen=True, eq=False)
class JobKinds:
    """Jobs by what they ask for. Kinds are numbered by all that they ask for, memory last.

    Attributes
    ----------
    names : n_dim names of what is asked for: cores, memory, what else is counted, types of devices
    of : (n_job,) kind of each job
    ask : (n_kind, n_dim) amounts of one part
    parts, eligible : (n_kind,) parts of a job, and number of its set of nodes
    group : (n_kind,) the same for neighbours that differ in memory alone
    """

    names: tuple[str, ...]
    of: IntArray
    ask: IntArray
    parts: IntArray
    eligible: IntArray
    group: IntArray


def job_kinds(workload: Workload, layout: NodeLayout, apart: IntArray | None = None) -> JobKinds:
    """Find the kinds of jobs of a workload on shared nodes; jobs that differ in `apart`, (n_job,), are of different kinds."""
    cores, *others = (name for name, _ in layout.counted)
    names = (cores, MEMORY, *others, *layout.inside)
    asked = [workload.request(name) for name in names]
    eligible = eligible_sets(layout.machine, workload.table)
    columns = [eligible.of, *asked[2:], asked[0], workload.nodes, asked[1]]
    if apart is not None:
        columns.insert(0, apart)
    order = np.arange(len(workload))
    for column in reversed(columns):
        if len(column) and bool((column != column[0]).any()):
            order = order[np.argsort(column[order], kind="stable")]
    new, apart = np.ones(len(order), dtype=np.bool_), np.ones(len(order), dtype=np.bool_)
    new[1:], apart[1:] = False, False
    for column in columns:
        differs = column[order[1:]] != column[order[:-1]]
        new[1:] |= differs
        if column is not columns[-1]:
            apart[1:] |= differs
    of = np.empty(len(order), dtype=np.int64)
    of[order] = np.cumsum(new) - 1
    first = order[new]
    return JobKinds(
        names,
        of,
        np.stack([column[first] for column in asked], axis=1),
        workload.nodes[first],
        eligible.of[first],
        np.cumsum(apart, dtype=np.int64)[new],
    )
