"""Affinity table of DNN training jobs on three generations of GPUs, from Gavel's measured throughputs.

Source: Narayanan et al. 2020, "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads" (Gavel); CSV of
the measurements in its repository: gpu, consolidated, job_type, num_gpus, steps_per_s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from poolwise.errors import InputError
from poolwise.registry import register
from poolwise.traces.affinity.tables import OPERATIONS, UnitTables
from poolwise.traces.table_checks import refuse, require
from poolwise.traces.table_columns import columns_of_csv, known_numbers

_COLUMNS = ("gpu", "consolidated", "job_type", "num_gpus", "steps_per_s")
_BATCH = re.compile(r"\s*\(batch size (\d+)\)")


@register("affinities", "gavel")
@dataclass(frozen=True)
class Gavel:
    """Gavel's isolated throughputs: unit types k80, p100, v100; one task type per job type and batch size, as resnet-18-b16.

    A training step counts as a million operations, so a rate equals the steps per second of the file, digit for digit. A
    throughput of 0 (out of memory) means that the unit cannot run the task.

    Parameters
    ----------
    gpus
        GPUs per job; a unit represents this many GPUs.
    consolidated
        Read the runs whose GPUs are in one server instead of spread over servers.
    """

    gpus: int = 1
    consolidated: bool = True

    def read(self, path: Path) -> UnitTables:
        """Read gavel_isolated.csv."""
        source = columns_of_csv(path)
        require(source, _COLUMNS)
        steps, gpus = known_numbers(source, "steps_per_s"), source.wholes("num_gpus")
        refuse(source, "steps_per_s", ~(steps >= 0), "is not a throughput")
        together, units, jobs = (source.texts(name).tolist() for name in ("consolidated", "gpu", "job_type"))
        rates: dict[str, dict[str, float]] = {}
        for row, unit in enumerate(units):
            if int(gpus[row]) == self.gpus and together[row] == ("yes" if self.consolidated else "no"):
                rate_of = rates.setdefault(unit, {})
                if (task := task_name(jobs[row])) in rate_of:
                    raise source.error(row, "job_type", f"{task} on {unit} appears twice", "keep one of the rows")
                rate_of[task] = float(steps[row])
        if not rates:
            sizes = ", ".join(map(str, sorted(set(gpus.tolist()))))
            problem, remedy = f"no rows with {self.gpus} GPUs", f"set gpus to one of {sizes}"
            raise InputError(problem, file=path, field="num_gpus", remedy=remedy)
        location = "in one server" if self.consolidated else "spread over servers"
        grouping = "" if self.gpus == 1 else f", {self.gpus} GPUs {location} as one unit"
        return UnitTables.of(
            rates,
            (
                f"Gavel, isolated throughputs{grouping}: a step is {OPERATIONS:,} operations, a rate is steps per second.",
                "Narayanan et al., OSDI 2020; (c) 2020 Stanford Future Data Systems, MIT License.",
                f"Rows: unit types 0 to 5 (none), then {', '.join(rates)}.",
            ),
        )


def task_name(job_type: str) -> str:
    """Convert "ResNet-18 (batch size 16)" to the name resnet-18-b16."""
    return _BATCH.sub(r"-b\1", job_type.strip()).lower().replace(" ", "-")
