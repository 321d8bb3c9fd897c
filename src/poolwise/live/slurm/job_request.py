"""Resource request of a job: its options to Slurm, plus `KEY=VALUE` pairs in its comment for resources that Slurm lacks.

A comment such as `memory=96GiB nvme=2` requests, per node, 96 GiB of memory (local and pool memory together) and two devices.
Other words of the comment are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from poolwise.errors import InputError
from poolwise.live.slurm.parsing import SlurmJob
from poolwise.units import parse

_PAIR = re.compile(r"(?<![\w=])(?P<key>[A-Za-z_]\w*)=(?P<value>[^\s,;]+)")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Request of a job in the units of the machine; schedulers treat jobs with equal requests alike.

    Attributes
    ----------
    tasks : number of identical components on shared nodes; 1 if jobs take whole nodes
    limit : time limit (ns)
    submit : submission time (ns since 1970)
    user : numeric user id
    amounts : resource -> amount per task and node
    """

    tasks: int
    limit: int
    submit: int
    user: int
    amounts: Mapping[str, int]

    @classmethod
    def of(cls, gang: tuple[SlurmJob, ...], whole: bool, unit: int, devices: Collection[str]) -> JobRequest:
        """Read the request of a job, with memory in MiB rounded up to a multiple of `unit`.

        Raises InputError, naming the field, if a comment cannot be parsed, or if components differ on shared nodes.
        """
        requested = [_requested_amounts(job, whole, devices) for job in gang]
        first = gang[0]
        if whole:
            amounts = {name: max(part[name] for part in requested) for name in requested[0]}
            amounts["nodes"], tasks = sum(job.nodes for job in gang), 1
        else:
            if any(part != requested[0] for part in requested):
                raise InputError(
                    "components with different requests cannot be placed on shared nodes", field="het-job", remedy=_ALIKE
                )
            amounts, tasks = requested[0], len(gang)
        amounts["memory"] = -(-amounts["memory"] // unit) * unit
        return cls(tasks, first.limit, first.submit, first.user, amounts)


_ALIKE = "submit components with equal requests, or use a partition of whole nodes"


def _requested_amounts(job: SlurmJob, whole: bool, devices: Collection[str]) -> dict[str, int]:
    """Return the amounts per node of a component, and its number of nodes."""
    amounts = dict.fromkeys(devices, 0) | {"memory": 0}
    for pair in _PAIR.finditer(job.comment):
        key, value = pair["key"], pair["value"]
        if key not in amounts:
            continue
        try:
            amounts[key] = parse(value, "memory" if key == "memory" else "count")
        except ValueError as error:
            raise InputError(str(error), file=f"comment of job {job.name}", field=key, remedy="such as memory=96GiB") from None
    memory = -(-job.memory // max(job.nodes, 1))
    amounts["memory"] = amounts["memory"] or memory
    cores = {} if whole else {"cores": -(-job.cpus // max(job.nodes, 1))}
    return {"nodes": job.nodes, **cores, **amounts}
