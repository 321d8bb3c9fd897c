"""Input of a round of flow scheduling: admission, admitted jobs, free amounts and link loads.

Source of the admission: Amaral et al., DRMaestro, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.optimize.min_cost_flow import FlowSolver
from poolwise.policies.cost.model import CostModel, TaskClasses, Waiting
from poolwise.schedulers.flow.classes import merged, named
from poolwise.schedulers.flow.flow_layout import FlowLayout
from poolwise.schedulers.flow.graph import Clock
from poolwise.schedulers.flow.shapes import Shapes

if TYPE_CHECKING:
    from poolwise.optimize.min_cost_flow.named import NamedFlow

Admission = Literal["prefix", "filter"]
KeyColumns = Sequence[NDArray[np.generic]]


def admit(demand: IntArray, free: IntArray, rule: Admission) -> BoolArray:
    """Admit jobs, those that have waited longest first, while they fit the free amounts in total.

    Parameters
    ----------
    demand
        (n_job, n_resource) demand of whole jobs, in queue order.
    free
        (n_resource,) free amounts, summed over the machine.
    rule
        "prefix" stops at the first job that does not fit, so that no job passes it; "filter" continues with later jobs.

    Returns
    -------
    (n_job,) True for admitted jobs.
    """
    fits: BoolArray = np.all(np.cumsum(demand, axis=0) <= free, axis=1)
    if rule == "prefix" or bool(fits.all()):
        return np.logical_and.accumulate(fits)
    admitted = np.zeros(len(demand), dtype=np.bool_)
    left = free.copy()
    for k in np.flatnonzero((demand <= free).all(axis=1)).tolist():
        if (demand[k] <= left).all():
            admitted[k] = True
            left -= demand[k]
    return admitted


@dataclass(frozen=True, eq=False)
class Options:
    """Options of graph construction; see `FlowScheduler`."""

    cost: CostModel
    pooled: bool = True
    local_first: bool = True
    aggregated: bool = True
    solver: FlowSolver = "ortools"
    solve_again: bool = True


@dataclass(frozen=True, eq=False)
class Round:
    """State that the phases of one round read; it does not change while they run.

    Attributes
    ----------
    shapes : shapes of the jobs; `of`: (n_job,) the shape of each job
    jobs : (n_job,) rows of the job table, in queue order
    numbers : numbers of the waiting tasks of each job
    tasks : (n_job,) number of waiting tasks of each job; they start together
    passes, waited_s : (n_job,) number of passes and seconds that each job has waited
    free : (n_spot, n_resource + n_kind) free amounts (see `FlowLayout.amounts`)
    free_devices : kind -> (n_device,) True for free devices
    load : (n_spot,) load in [0, 1] of the link of each spot
    running : (n_spot,) tasks that run on each node
    local : (n_shape,) True if the tasks of a shape would find their devices on their own nodes of the idle machine
    kept : phase -> residual graph of the previous round
    """

    layout: FlowLayout
    shapes: Shapes
    of: IntArray
    options: Options
    clock: Clock
    jobs: IntArray
    numbers: tuple[tuple[int, ...], ...]
    tasks: IntArray
    passes: IntArray
    waited_s: FloatArray
    free: IntArray
    free_devices: Mapping[str, BoolArray]
    load: FloatArray
    running: IntArray
    local: BoolArray
    kept: Mapping[str, NamedFlow] = field(default_factory=dict)

    def waiting(self, jobs: IntArray, dearest: FloatArray, tasks: int) -> FloatArray:
        """Return the cost of leaving one task of each job waiting, (k,), given its most expensive arc."""
        return self.options.cost.waiting(Waiting(self.passes[jobs], self.waited_s[jobs], dearest, tasks))

    def asking(
        self, shapes: IntArray, resources: tuple[str, ...], demand: IntArray, load: FloatArray | None = None
    ) -> TaskClasses:
        """Return the task classes of shapes, (k,), with given demands, (k, n_resource), as input of the cost model."""
        table = self.shapes
        return TaskClasses(
            resources,
            demand,
            tuple(table.kind[k] for k in shapes.tolist()),
            np.zeros(len(shapes)) if load is None else load,
            self.local[shapes],
            table.data[shapes],
            table.data_at[shapes],
        )

    def groups(self, jobs: IntArray, wait: FloatArray, *columns: IntArray) -> tuple[IntArray, IntArray]:
        """Group the (k,) tasks of jobs that have equal waits and equal columns; each gang has its own group.

        Returns
        -------
        of, first : as returned by `merged`
        """
        if not self.options.aggregated:
            return merged(np.arange(len(jobs)))
        gang = np.where(self.tasks[jobs] > 1, jobs + 1, 0)
        return merged(gang, wait, *columns)

    def names(self, groups: KeyColumns, classes: KeyColumns, places: Sequence[KeyColumns]) -> IntArray:
        """Return names of a graph's nodes, (n_node,), see `Graph`: hashes that identify groups, classes and places.

        The result is empty if no residual graph is kept, because only these use the names.
        """
        if not self.kept:
            return np.zeros(0, dtype=np.int64)
        first = named(0, *groups)
        parts = [named(3 + k, *columns) for k, columns in enumerate(places)]
        return np.concatenate([first, named(1, *classes), *parts, named(2, first), np.zeros(1, dtype=np.int64)])
