"""What a job asks for: what it asked Slurm for, and in its comment what Slurm has no words for.

A comment such as `memory=96GiB nvme=2` asks, for each node, for 96 GiB of memory, its own and from a pool together, and for
two devices. Other words of a comment are its user's own.
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
    """What a job asks for, in the units of a machine; two that are equal are the same to any scheduler.

    Attributes
    ----------
    tasks : components that are alike, on nodes that jobs share; 1 where jobs take whole nodes
    limit : ns
    submit : ns since 1970
    user : number of the user
    amounts : resource -> amount of a task, of each of its nodes
    """

    tasks: int
    limit: int
    submit: int
    user: int
    amounts: Mapping[str, int]

    @classmethod
    def of(cls, gang: tuple[SlurmJob, ...], whole: bool, unit: int, devices: Collection[str]) -> JobRequest:
        """Read what a job asks for, in MiB rounded up to `unit` where it is memory.

        Raises InputError, with the field, for a comment that cannot be read, and for components that are not alike where they
        must be.
        """
        asked = [_asked(job, whole, devices) for job in gang]
        first = gang[0]
        if whole:
            amounts = {name: max(part[name] for part in asked) for name in asked[0]}
            amounts["nodes"], tasks = sum(job.nodes for job in gang), 1
        else:
            if any(part != asked[0] for part in asked):
                raise InputError(
                    "components that differ cannot be placed on nodes that jobs share", field="het-job", remedy=_ALIKE
                )
            amounts, tasks = asked[0], len(gang)
        amounts["memory"] = -(-amounts["memory"] // unit) * unit
        return cls(tasks, first.limit, first.submit, first.user, amounts)


_ALIKE = "submit components that ask for the same, or to a partition of whole nodes"


def _asked(job: SlurmJob, whole: bool, devices: Collection[str]) -> dict[str, int]:
    """Amounts of each node of a component, and how many nodes."""
    said = dict.fromkeys(devices, 0) | {"memory": 0}
    for pair in _PAIR.finditer(job.comment):
        key, value = pair["key"], pair["value"]
        if key not in said:
            continue
        try:
            said[key] = parse(value, "memory" if key == "memory" else "count")
        except ValueError as error:
            raise InputError(str(error), file=f"comment of job {job.name}", field=key, remedy="such as memory=96GiB") from None
    memory = -(-job.memory // max(job.nodes, 1))
    said["memory"] = said["memory"] or memory
    cores = {} if whole else {"cores": -(-job.cpus // max(job.nodes, 1))}
    return {"nodes": job.nodes, **cores, **said}
