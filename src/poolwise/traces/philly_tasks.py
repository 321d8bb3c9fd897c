"""Trace format of Philly's jobs as tasks for several types of GPU, each assigned a training job measured on them.

Sources: Jeon et al. 2019 (jobs; `traces.philly`); Narayanan et al. 2020 (training jobs; `traces.affinity.gavel`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Kind, Machine, Workload
from poolwise.performance.affinity import rates
from poolwise.quantities import US
from poolwise.registry import register
from poolwise.traces.format import TraceFormat
from poolwise.traces.generators.variates import whole_below
from poolwise.traces.philly import Philly
from poolwise.traces.vinesim.tasks import LARGEST, TaskList
from poolwise.traces.vinesim.types import UNITS
from poolwise.traces.vinesim.workload import workload_of_tasks


@register("formats", "philly_tasks")
@dataclass(frozen=True)
class PhillyTasks(TraceFormat):
    """Philly's single-GPU jobs, one task each, for a machine of units with affinities. Select this format by name.

    Philly does not record what its jobs train. The kind of each job is drawn uniformly from the task types that the reference
    unit can run, from the seed and the job's row in the file. Its operations are chosen so that it takes its recorded time on
    the reference unit. Both are assumptions. Jobs of several GPUs, whose tasks would have to start together, are excluded and
    counted.

    Parameters
    ----------
    reference
        Type of unit on which jobs take their recorded time; the machine must have one.
    seed
        Random seed of the kinds.
    timezone
        As in `traces.philly`.
    """

    reference: str = "p100"
    seed: int = 0
    timezone: str = "UTC"

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read jobs as tasks; raise InputError as `Philly` does, and if the machine lacks the reference unit."""
        rate = self._reference(machine)
        able = np.flatnonzero(rate > 0)
        jobs = Philly(self.timezone).read(path, _one_gpu_each())
        alone = np.flatnonzero(jobs.nodes == 1)
        if not len(alone):
            raise InputError("no job has one GPU", file=path, field="num_gpus", remedy="use a trace with such jobs")
        kind = able[whole_below(len(able), self.seed, "philly.kind", jobs.id[alone])]
        operations = np.maximum(np.rint(jobs.duration[alone] / US * rate[kind]), 1.0)
        if float(operations.max()) >= LARGEST:
            problem, remedy = "a job has more than 2**53 operations", "use lower rates or shorter jobs"
            raise InputError(problem, file=path, field="duration", remedy=remedy)
        none = np.zeros_like(alone)
        unit = none + UNITS.index("unspecified")
        columns = [kind, none, none, none, operations.astype(np.int64), unit, none + jobs.id[alone]]
        submit = jobs.submit[alone] - jobs.submit[alone[0]]
        workload = workload_of_tasks(TaskList.of(np.stack(columns, axis=1)), machine, submit)
        excluded = {"more than one GPU": len(jobs) - len(alone)} if len(alone) < len(jobs) else {}
        repaired = {name: count for name, count in jobs.repaired.items() if not name.startswith("requested time")}
        return replace(workload, excluded={**jobs.excluded, **excluded}, repaired=repaired, name=jobs.name)

    def _reference(self, machine: Machine) -> FloatArray:
        """Return the operations per microsecond of the reference unit, (n_task_type,)."""
        units = machine.of_kind(Kind.NODE).tolist()
        reference_unit = next((unit for unit in units if machine.type[unit] == self.reference), None)
        if reference_unit is None:
            types = {machine.type[unit] for unit in units}
            raise UnknownNameError.of("type of unit on this machine:", self.reference, types, field="reference")
        rate: FloatArray = rates(machine)[:, reference_unit]
        if not (rate > 0).any():
            raise InputError(
                f"'{self.reference}' cannot run any task type", field="reference", remedy="give the machine an affinity table"
            )
        return rate


def _one_gpu_each() -> Machine:
    """Build a machine on which a job takes as many nodes as it has GPUs."""
    flat = Machine.of_racks(1, 1)
    return replace(flat, per_node={**flat.per_node, "gpu": np.ones(1, dtype=np.int64)})
