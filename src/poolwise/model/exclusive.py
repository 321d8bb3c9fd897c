"""Exclusive jobs on shared nodes: their nodes run no other job (Slurm's `--exclusive` and OverSubscribe=EXCLUSIVE).

A run with exclusive jobs gets one more resource, of which each shared node has `PARTS` units. Each part of an ordinary job
takes one unit, and each part of an exclusive job takes all of them. The exclusive part therefore starts on an empty node, and
no other part joins it. Engines and kernels need no rule of their own. The schedule does not contain the resource.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError, PolicyError
from poolwise.model.eligibility import taking_partitions
from poolwise.model.kind import Kind
from poolwise.model.machine import Machine
from poolwise.model.placement import Placement
from poolwise.model.schedule import Schedule
from poolwise.model.state import Initial, InitialRun
from poolwise.model.workload import Workload

EXCLUSIVE: Final = "exclusive"
"""Attribute of jobs: true, false, 1 or 0; an unknown value (NaN, or empty text) means false."""
SHARE: Final = "whole nodes"
"""Name of the added resource. Machine files cannot contain it, because it has a space."""
PARTS: Final = 2**20
"""Units of the added resource on each shared node; a node never runs that many parts of jobs."""
_FLAGS: Final = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False, "": False}
_REMEDY: Final = "write true or false"


@dataclass(frozen=True, eq=False)
class ExclusiveNodes:
    """A run whose exclusive jobs the added resource keeps apart.

    Attributes
    ----------
    workload, machine, initial : workload, machine and initial state with the resource
    plain_workload, plain_machine : workload and machine without it
    """

    workload: Workload
    machine: Machine
    initial: Initial | None
    plain_workload: Workload
    plain_machine: Machine

    def schedule(self, schedule: Schedule) -> Schedule:
        """Return a schedule of the run, with the resource removed.

        Raises PolicyError if a start lacks its share, for example because the placement policy ignores some resources of nodes.
        """
        run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
        self._check_shares(schedule, run)
        amount, resource, keep = self._without(run, schedule.owner, schedule.resource, schedule.amount)
        offset = np.concatenate([[0], np.cumsum(np.bincount(run[keep], minlength=schedule.n_run))]).astype(np.int64)
        return replace(
            schedule,
            workload=self.plain_workload,
            machine=replace(self.plain_machine, failures=schedule.machine.failures),
            offset=offset,
            owner=schedule.owner[keep],
            resource=resource[keep],
            amount=amount[keep],
            resizes=tuple(replace(resize, placement=self.placement(resize.placement)) for resize in schedule.resizes),
        )

    def like(self, workload: Workload) -> Workload:
        """Add the resource to a variant of the plain workload that has the same jobs, row by row."""
        return replace(workload, requests={**workload.requests, SHARE: self.workload.requests[SHARE]})

    def placement(self, placement: Placement) -> Placement:
        """Return a placement without the resource."""
        amount, resource, keep = self._without(placement.task, placement.owner, placement.resource, placement.amount)
        return Placement(placement.task[keep], placement.owner[keep], resource[keep], amount[keep])

    def _without(
        self, group: IntArray, owner: IntArray, resource: IntArray, amount: IntArray
    ) -> tuple[IntArray, IntArray, BoolArray]:
        """Return the amounts and resources of rows, and a mask of the rows to keep, (n_row,) each.

        A node without any other row keeps one row with amount 0.
        """
        column = len(self.plain_machine.resources)
        shares, part = resource == column, group * self.machine.n_owner + owner
        alone = shares & ~np.isin(part, part[~shares])
        return np.where(shares, 0, amount), np.where(shares, self._primary, resource), ~shares | alone

    @property
    def _primary(self) -> int:
        names = self.plain_machine.resources
        return names.index("cores") if "cores" in names else 0

    def _check_shares(self, schedule: Schedule, run: IntArray) -> None:
        shares = schedule.resource == len(self.plain_machine.resources)
        held = np.bincount(run[shares], weights=schedule.amount[shares], minlength=schedule.n_run)
        jobs = self.workload
        lacking = held < (jobs.request(SHARE) * jobs.nodes)[schedule.job] * schedule.tasks
        lacking[: 0 if self.initial is None else len(self.initial.runs)] = False
        if lacking.any():
            job = int(jobs.id[schedule.job[np.argmax(lacking)]])
            problem = f"job {job} was placed without its share of a node, so exclusive jobs would not be alone on their nodes"
            raise PolicyError(f'{problem}; use placement = "first_fit" or another placement on shared nodes')


def exclusive_nodes(workload: Workload, machine: Machine, initial: Initial | None = None) -> ExclusiveNodes | None:
    """Return a run with the resource that keeps exclusive jobs apart; None if it has no exclusive jobs or no shared nodes.

    Raises InputError for a value of the attribute `exclusive` that is neither true nor false, and for a machine with both whole
    and shared nodes.
    """
    alone = exclusive_jobs(workload, machine)
    if not alone.any() or not _shared(machine).any():
        return None
    if "nodes" in machine.resources:
        problem = f"exclusive jobs are not supported on machine '{machine.name}', which has whole and shared nodes"
        raise InputError(problem, field=EXCLUSIVE, remedy="use shared nodes only, or remove the column")
    wider = _with_share(machine)
    amounts = np.where(alone, PARTS, 1).astype(np.int64)
    jobs = replace(workload, requests={**workload.requests, SHARE: amounts})
    state = None if initial is None else initial._replace(runs=_with_shares(initial.runs, wider, amounts))
    return ExclusiveNodes(jobs, wider, state, workload, machine)


def exclusive_jobs(workload: Workload, machine: Machine) -> BoolArray:
    """Return a mask of the exclusive jobs, (n_job,): those with the attribute, and those accepted by an exclusive partition."""
    alone = np.zeros(len(workload), dtype=np.bool_)
    if EXCLUSIVE in workload.attributes:
        alone = _flags(workload.attributes[EXCLUSIVE], workload.id)
    names = {part.name for part in machine.partitions if part.exclusive}
    if names:
        taking = taking_partitions(machine, workload.table, slice(0, len(workload)))
        texts, which = np.unique(taking, return_inverse=True)
        alone = alone | np.array([not names.isdisjoint(text.split(",")) for text in texts.tolist()], dtype=np.bool_)[which]
    return alone


def flag(text: str) -> bool | None:
    """Return whether a text is true; None if it is neither true nor false."""
    return _FLAGS.get(text.strip().lower())


def _flags(values: NDArray[np.generic], ids: IntArray) -> BoolArray:
    if values.dtype.kind in "UO":
        parsed = [flag(str(value)) for value in values.tolist()]
        bad = np.array([parsed_flag is None for parsed_flag in parsed], dtype=np.bool_)
        flags = np.array([bool(parsed_flag) for parsed_flag in parsed], dtype=np.bool_)
    else:
        numbers = np.nan_to_num(values.astype(np.float64))
        bad, flags = (numbers != 0) & (numbers != 1), numbers == 1
    if bad.any():
        row = int(np.argmax(bad))
        problem = f"job {int(ids[row])}: {EXCLUSIVE} is '{str(values[row])[:40]}', neither true nor false"
        raise InputError(problem, field=EXCLUSIVE, remedy=_REMEDY)
    return flags


def _shared(machine: Machine) -> BoolArray:
    """Return a mask of the shared nodes with capacity, (n_owner,). On whole nodes, jobs are alone anyway."""
    whole = machine.capacity[:, machine.resource("nodes")] > 0 if "nodes" in machine.resources else False
    shared: BoolArray = (machine.kind == Kind.NODE) & machine.capacity.any(axis=1) & ~np.asarray(whole)
    return shared


@lru_cache(maxsize=8)  # a machine is compared by identity, and so are the caches of what depends on it
def _with_share(machine: Machine) -> Machine:
    share = np.where(_shared(machine), PARTS, 0)[:, None].astype(np.int64)
    return replace(machine, resources=(*machine.resources, SHARE), capacity=np.hstack([machine.capacity, share]))


def _with_shares(runs: Sequence[InitialRun], machine: Machine, amounts: IntArray) -> list[InitialRun]:
    """Return initial runs with their shares; an exclusive job that shares a node takes the units left there."""
    free = machine.capacity[:, -1].copy()
    shared_runs: dict[int, InitialRun] = {}
    for k in sorted(range(len(runs)), key=lambda k: int(amounts[runs[k].job])):
        rows: list[tuple[int, int, int, int]] = []
        held = runs[k].placement.rows()
        for at, row in enumerate(held):
            rows.append(row)
            last = at + 1 == len(held) or held[at + 1][:2] != row[:2]
            if last and machine.capacity[row[1], -1] and not any(later[:2] == row[:2] for later in held[at + 1 :]):
                share = min(int(amounts[runs[k].job]), int(free[row[1]]))
                free[row[1]] -= share
                rows.append((row[0], row[1], len(machine.resources) - 1, share))
        shared_runs[k] = runs[k]._replace(placement=Placement.of(rows))
    return [shared_runs[k] for k in range(len(runs))]
