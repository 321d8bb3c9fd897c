"""Kinds of jobs with equal requests on shared nodes, and the dimensions of requests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.model import Workload
from poolwise.model.eligibility import eligible_sets
from poolwise.policies.placement.nodes.layout import MEMORY, NodeLayout


@dataclass(frozen=True, eq=False)
class JobKinds:
    """Jobs grouped by request. Kinds are sorted by request, memory last.

    Attributes
    ----------
    names : n_dim names of the requested resources: cores, memory, other countable resources, device types
    of : (n_job,) kind of each job
    request : (n_kind, n_dim) amounts of one part
    parts, eligible : (n_kind,) parts of a job, and number of its set of nodes
    group : (n_kind,) number of a group; adjacent kinds that differ only in memory have the same number
    """

    names: tuple[str, ...]
    of: IntArray
    request: IntArray
    parts: IntArray
    eligible: IntArray
    group: IntArray


def job_kinds(workload: Workload, layout: NodeLayout, distinct: IntArray | None = None) -> JobKinds:
    """Group the jobs of a workload on shared nodes; jobs that differ in `apart`, (n_job,), are of different kinds."""
    cores, *others = (name for name, _ in layout.counted)
    names = (cores, MEMORY, *others, *layout.inside)
    amounts = [workload.request(name) for name in names]
    eligible = eligible_sets(layout.machine, workload.table)
    columns = [eligible.of, *amounts[2:], amounts[0], workload.nodes, amounts[1]]
    if distinct is not None:
        columns.insert(0, distinct)
    order = np.arange(len(workload))
    for column in reversed(columns):
        if len(column) and bool((column != column[0]).any()):
            order = order[np.argsort(column[order], kind="stable")]
    new, distinct = np.ones(len(order), dtype=np.bool_), np.ones(len(order), dtype=np.bool_)
    new[1:], distinct[1:] = False, False
    for column in columns:
        differs = column[order[1:]] != column[order[:-1]]
        new[1:] |= differs
        if column is not columns[-1]:
            distinct[1:] |= differs
    of = np.empty(len(order), dtype=np.int64)
    of[order] = np.cumsum(new) - 1
    first = order[new]
    return JobKinds(
        names,
        of,
        np.stack([column[first] for column in amounts], axis=1),
        workload.nodes[first],
        eligible.of[first],
        np.cumsum(distinct, dtype=np.int64)[new],
    )
