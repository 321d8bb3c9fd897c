"""What a cost model of flow scheduling is: the cost of placing a task somewhere, and the cost of letting it wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TaskClasses:
    """Classes of tasks that ask for the same; in a phase of devices, of requests for one device.

    Attributes
    ----------
    resources : n_resource names of the columns of demands and amounts; devices count under the name of their kind
    demand : (n_class, n_resource) what one task asks for
    kind : n_class names of what the tasks are, "" where the job table does not say
    load : (n_class,) load in [0, 1] of the link of the node that a task was placed on, 0 before it has one
    local : (n_class,) whether an idle node of the machine could give a task its devices by itself
    data : (n_class,) bytes of input data, 0 where the job table does not say
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
    """Classes of machines, or of devices, that offer the same.

    Attributes
    ----------
    free, capacity : (n_place, n_resource) of one machine; for devices their number
    running : (n_place,) tasks that run there
    load : (n_place,) load in [0, 1] of the link
    position : (n_place, 2) (rack, shelf)
    preferred : whether the task should rather be there: it finds its devices where its processor is
    remote : whether it would reach its devices over the network from there
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
    """Jobs that may be left waiting in a phase.

    Attributes
    ----------
    passes : (n_job,) scheduling passes that a job has been skipped
    waited_s : (n_job,) seconds since submission
    dearest : (n_job,) cost of the dearest arc that one of its tasks has in this phase, 0 without any
    tasks : tasks in the phase, of all jobs
    """

    passes: IntArray
    waited_s: FloatArray
    dearest: FloatArray
    tasks: int


class CostModel(Protocol):
    """Costs of a flow network's arcs, real numbers; `optimize.min_cost_flow.scaled` makes them whole.

    Machines that are alike in what is free and in the columns that `looks_at` names are merged into one node of the graph.
    Register with `@register("costs", NAME)`.
    """

    @property
    def looks_at(self) -> frozenset[str]:
        """Columns of `Places` besides free and capacity on which costs depend: "running", "load", "position"."""
        ...

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Cost of placing a task of each class at each place.

        Returns
        -------
        (n_class, n_place, 1), or (n_class, n_place, copies) where the second copy on a machine has another cost than the first;
        inf where it must not go.
        """
        ...

    def waiting(self, waiting: Waiting) -> FloatArray:
        """(n_job,) cost of leaving one task of each job unscheduled."""
        ...

    def hopeless(self, tasks: TaskClasses) -> BoolArray:
        """(n_class,) which tasks would miss their goal on the idle machine too; none of a model without goals."""
        return np.zeros(len(tasks), dtype=np.bool_)
