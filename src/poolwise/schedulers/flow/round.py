"""What a round of flow scheduling starts from: the jobs that were let in, what is free, how loaded links are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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


KeyColumns = Sequence[NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class Options:
    """How graphs are built; see `FlowScheduler`."""

    cost: CostModel
    pooled: bool = True
    local_first: bool = True
    aggregated: bool = True
    solver: FlowSolver = "ortools"
    solve_again: bool = True


@dataclass(frozen=True, eq=False)
class Round:
    """Everything that the phases of one round look at; none of it changes while they run.

    Attributes
    ----------
    shapes : shapes of the jobs, and `of`: (n_job,) the shape of each
    jobs : (n_job,) rows of the job table, in the order of the queue
    numbers : numbers of the waiting tasks of each job
    tasks : (n_job,) number of waiting tasks of each job; they start together
    passes, waited_s : (n_job,) how long they have been waiting
    free : (n_spot, n_resource + n_kind) what is free (see `FlowLayout.amounts`)
    free_devices : kind -> (n_device,) which are free
    load : (n_spot,) load in [0, 1] of the link of each spot
    running : (n_spot,) tasks that run on each node
    local : (n_shape,) whether the tasks of a shape would find their devices on their own nodes if nothing ran
    kept : phase -> residual graph of the round before
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
        """(k,) cost of leaving a task of each of (k,) jobs waiting, given each one's dearest arc."""
        return self.options.cost.waiting(Waiting(self.passes[jobs], self.waited_s[jobs], dearest, tasks))

    def asking(
        self, shapes: IntArray, resources: tuple[str, ...], demand: IntArray, load: FloatArray | None = None
    ) -> TaskClasses:
        """Classes of tasks as a cost model sees them: (k,) shapes with their (k, n_resource) demand."""
        known = self.shapes
        return TaskClasses(
            resources,
            demand,
            tuple(known.kind[k] for k in shapes.tolist()),
            np.zeros(len(shapes)) if load is None else load,
            self.local[shapes],
            known.data[shapes],
            known.data_at[shapes],
        )

    def groups(self, jobs: IntArray, wait: FloatArray, *columns: IntArray) -> tuple[IntArray, IntArray]:
        """Number (k,) tasks of jobs so that those alike in wait and columns are one group; gangs stay apart.

        Returns
        -------
        of, first : as `merged`
        """
        if not self.options.aggregated:
            return merged(np.arange(len(jobs)))
        gang = np.where(self.tasks[jobs] > 1, jobs + 1, 0)
        return merged(gang, wait, *columns)

    def names(self, groups: KeyColumns, classes: KeyColumns, places: Sequence[KeyColumns]) -> IntArray:
        """(n_node,) names of a graph's nodes (see `Graph`): hashes of what groups, classes, places are.

        None where no residual graph is kept: nobody asks for them.
        """
        if not self.kept:
            return np.zeros(0, dtype=np.int64)
        first = named(0, *groups)
        parts = [named(3 + k, *columns) for k, columns in enumerate(places)]
        return np.concatenate([first, named(1, *classes), *parts, named(2, first), np.zeros(1, dtype=np.int64)])
