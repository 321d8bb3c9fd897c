"""Interface of cost models for flow scheduling: the costs of placing a task at a place and of letting it wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TaskClasses:
    """Classes of tasks with equal requests; in a device phase, classes of requests for one device.

    Attributes
    ----------
    resources : n_resource names of the columns of demands and amounts; devices count under the name of their kind
    demand : (n_class, n_resource) amounts that one task requests
    kind : n_class kinds of the tasks, "" if the job table has none
    load : (n_class,) load in [0, 1] of the link of the node on which a task was placed, 0 before it has one
    local : (n_class,) whether an idle node of the machine could provide a task's devices by itself
    data : (n_class,) bytes of input data, 0 if the job table has none
    data_at : (n_class, 2) position (rack, shelf) of the input data
    """

    resources: tuple[str, ...]
    demand: IntArray
    kind: tuple[str, ...]
    load: FloatArray
    local: BoolArray
    data: FloatArray
    data_at: IntArray

    def __len__(self) -> int:
        return len(self.demand)


@dataclass(frozen=True, eq=False)
class Places:
    """Classes of machines, or of devices, with equal offers.

    Attributes
    ----------
    free, capacity : (n_place, n_resource) of one machine; for devices their number
    running : (n_place,) running tasks
    load : (n_place,) load in [0, 1] of the link
    position : (n_place, 2) (rack, shelf)
    preferred : whether the task prefers these places, because its devices are where its processor is
    remote : whether the task would reach its devices over the network
    """

    free: IntArray
    capacity: IntArray
    running: IntArray
    load: FloatArray
    position: IntArray
    preferred: bool = False
    remote: bool = False

    def __len__(self) -> int:
        return len(self.free)


@dataclass(frozen=True, eq=False)
class Waiting:
    """Jobs that may wait in a phase.

    Attributes
    ----------
    passes : (n_job,) scheduling passes in which a job has been skipped
    waited_s : (n_job,) seconds since submission
    dearest : (n_job,) cost of the most expensive arc of a job's tasks in this phase, 0 without arcs
    tasks : number of tasks of all jobs in the phase
    """

    passes: IntArray
    waited_s: FloatArray
    dearest: FloatArray
    tasks: int


class CostModel(Protocol):
    """Costs of the arcs of a flow network, as real numbers; `optimize.min_cost_flow.scaled` converts them to whole numbers.

    Machines with equal free amounts and equal values in the columns of `looks_at` are merged into one node of the graph.
    Register a cost model with `@register("costs", NAME)`.
    """

    @property
    def looks_at(self) -> frozenset[str]:
        """Columns of `Places` other than free and capacity on which costs depend: "running", "load", "position"."""
        ...

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the cost of placing a task of each class at each place.

        Parameters
        ----------
        tasks, places
            Classes of tasks and of places.
        copies
            Maximum number of tasks of one class on one machine.

        Returns
        -------
        (n_class, n_place, 1), or (n_class, n_place, copies) if the second copy on a machine costs more than the first; inf if a
        task must not be placed there.
        """
        ...

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return the cost of leaving one task of each job unscheduled, (n_job,)."""
        ...

    def hopeless(self, tasks: TaskClasses) -> BoolArray:
        """Return which tasks would miss their goal even on the idle machine, (n_class,); none for models without goals."""
        return np.zeros(len(tasks), dtype=np.bool_)
