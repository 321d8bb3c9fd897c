"""Nodes on which a job may run: those of the partitions that accept it, with all the features that it requires.

A partition accepts only jobs within its limits. A job that names several partitions may use the nodes of all that accept it; a
job that names none is in the default partition. A time limit never excludes a job that requests no time.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import UnknownNameError
from poolwise.model.job_table import JobTable
from poolwise.model.machine import Machine
from poolwise.model.partition import Partition, default_of
from poolwise.model.table_columns import Column, Kinds
from poolwise.quantities import SECOND, UNKNOWN, format_time, to_seconds

PARTITION, CONSTRAINT = "partition", "constraint"
TIME_LIMIT = "time_limit_s"
"""Attribute with each job's time limit in seconds, NaN without one; for logs in which jobs ran longer than their limits."""
NO_PARTITION = "!"
"""Partitions of a job that no partition accepts: it can never run."""
_NOTHING = ("", "-1")  # SWF numbers the partitions, and writes -1 for none


def eligible_sets(machine: Machine, table: JobTable) -> Kinds:
    """Assign each job a numbered set of eligible nodes; `eligible_owners(machine, *value)` returns the nodes of a set.

    A job's attribute "partition" names one or more of the machine's `node_sets`, separated by commas: its nodes may be in any
    of them. "constraint" names sets joined by "&": its nodes must be in all of them. A job that names no set may run anywhere,
    and so may all jobs on a machine without sets.
    """
    key = ("eligible", bool(machine.node_sets), machine.partitions)
    return table.kinds(key, lambda table, rows: _named(machine, table, rows))


def _named(machine: Machine, table: JobTable, rows: slice) -> tuple[Column, Column]:
    """Return the partitions that accept the job in each row, and its constraint, (k,) each, as text."""
    constraint = table.attributes.get(CONSTRAINT) if machine.node_sets else None
    empty = np.full(len(table.submit[rows]), "")
    return taking_partitions(machine, table, rows), empty if constraint is None else constraint[rows].astype(np.str_)


def taking_partitions(machine: Machine, table: JobTable, rows: slice) -> Column:
    """Return the partitions that accept the job in each row, (k,), as text; `NO_PARTITION` if no partition accepts it.

    Raises UnknownNameError for a partition that the machine does not have.
    """
    column = table.attributes.get(PARTITION) if machine.node_sets else None
    named = np.full(len(table.submit[rows]), "") if column is None else column[rows].astype(np.str_)
    if not machine.partitions:
        return named
    requested, nodes = time_limits(table, rows), requested_nodes(machine, table, rows)
    taking = np.full(len(named), NO_PARTITION, dtype=object)
    for text in np.unique(named).tolist():
        which = named == text
        parts = named_partitions(machine, text)
        if not parts:
            taking[which] = ""
        for part in parts:
            fits = which & ((requested <= part.max_time) | (requested >= UNKNOWN)) & (nodes <= part.max_nodes)
            taking[fits] = [part.name if names == NO_PARTITION else f"{names},{part.name}" for names in taking[fits].tolist()]
    return taking.astype(np.str_)


def time_limits(table: JobTable, rows: slice) -> IntArray:
    """Return the (k,) time limits of some jobs (ns): the requested times unless `TIME_LIMIT` differs; `units.UNKNOWN` for none.

    Schedulers plan with `JobTable.requested`, which is at least the run time; limits apply to what the user requested. Slurm
    terminates a job some time after its limit (OverTimeLimit, KillWait), so logs contain longer run times.
    """
    limits = table.attributes.get(TIME_LIMIT)
    if limits is None:
        return table.requested[rows]
    seconds = limits[rows]
    return np.where(np.isnan(seconds), UNKNOWN, np.rint(np.nan_to_num(seconds) * SECOND).astype(np.int64))


def requested_nodes(machine: Machine, table: JobTable, rows: slice) -> IntArray:
    """Return the (k,) numbers of nodes that some jobs request; tasks that share nodes may all run on one node."""
    nodes = table.nodes[rows]
    return nodes * table.tasks[rows] if "nodes" in machine.resources else nodes


@lru_cache(maxsize=1024)  # a machine is compared by identity
def named_partitions(machine: Machine, text: str) -> tuple[Partition, ...]:
    """Return the partitions that a job names, or the default one if it names none; raises UnknownNameError."""
    if text in _NOTHING:
        text = default_of(machine.partitions)
    partitions = {part.name: part for part in machine.partitions}
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in partitions:
            raise UnknownNameError.of(PARTITION, name, partitions, field=PARTITION)
    return tuple(partitions[name] for name in dict.fromkeys(names))


def has_tiers(machine: Machine) -> bool:
    """Return whether partitions give some jobs precedence over others; a job outside partitions has tier 1."""
    outside = {1} if machine.partitions and not default_of(machine.partitions) else set[int]()
    return len({part.tier for part in machine.partitions} | outside) > 1


def tiers(machine: Machine, table: JobTable) -> IntArray:
    """Return the highest tier among the partitions that accept each job, (n_job,); 1 for a job outside partitions."""
    tier_of = {part.name: part.tier for part in machine.partitions}

    def of(table: JobTable, rows: slice) -> IntArray:
        texts, which = np.unique(taking_partitions(machine, table, rows), return_inverse=True)
        highest = [max(tier_of.get(name, 1) for name in text.split(",")) for text in texts.tolist()]
        return np.array(highest, dtype=np.int64)[which]

    return table.derived(("tier", machine.partitions), of)


def exceeded_limits(machine: Machine, table: JobTable, job: int) -> str:
    """Return the limits that exclude a job from the partitions that it names; empty if one of them accepts the job."""
    row = slice(job, job + 1)
    if not machine.partitions or taking_partitions(machine, table, row)[0] != NO_PARTITION:
        return ""
    column = table.attributes.get(PARTITION)
    parts = named_partitions(machine, "" if column is None else str(column[job]))
    return "; ".join(_exceeded_limit(part, int(time_limits(table, row)[0])) for part in parts)


def _exceeded_limit(part: Partition, requested: int) -> str:
    """Return the limit of a partition that a job exceeds."""
    if part.max_time < requested < UNKNOWN:
        return f"partition '{part.name}' allows {format_time(to_seconds(part.max_time))} per job"
    return f"partition '{part.name}' allows {part.max_nodes} nodes per job"


@lru_cache(maxsize=1024)  # a machine is compared by identity
def eligible_owners(machine: Machine, partition: str, constraint: str) -> BoolArray:
    """Return a mask of the owners, (n_owner,), on which a job that names these sets may run; raises UnknownNameError."""
    values = np.full(machine.n_owner, partition != NO_PARTITION)
    if partition not in (*_NOTHING, NO_PARTITION) and machine.node_sets:
        values = np.any([_members(machine, name, PARTITION) for name in partition.split(",")], axis=0)
    if constraint not in _NOTHING and machine.node_sets:
        values = np.all([values, *(_members(machine, name, CONSTRAINT) for name in constraint.split("&"))], axis=0)
    values.setflags(write=False)
    return values


def partition_owners(machine: Machine, table: JobTable) -> BoolArray:
    """Return the distinct nonempty sets of owners, (k, n_owner), of the partitions that the jobs of a table name."""
    return _distinct_owners(machine, tuple(sorted({name for name, _ in eligible_sets(machine, table).value})))


@lru_cache(maxsize=64)  # a machine is compared by identity
def _distinct_owners(machine: Machine, names: tuple[str, ...]) -> BoolArray:
    sets = np.array([eligible_owners(machine, name, "") for name in names], dtype=np.bool_).reshape(-1, machine.n_owner)
    values: BoolArray = np.unique(sets[sets.any(axis=1)], axis=0)
    values.setflags(write=False)
    return values


def eligible_nodes(machine: Machine, table: JobTable, jobs: IntArray, owners: IntArray) -> BoolArray:
    """Return whether each of (k,) jobs may run on each of (n,) owners, (k, n)."""
    sets = eligible_sets(machine, table)
    allowed = np.array([eligible_owners(machine, *value)[owners] for value in sets.value], dtype=np.bool_)
    eligible: BoolArray = allowed.reshape(-1, len(owners))[sets.of[jobs]]
    return eligible


def _members(machine: Machine, name: str, field: str) -> BoolArray:
    members = machine.node_sets.get(name.strip())
    if members is None:
        raise UnknownNameError.of(field, name.strip(), machine.node_sets, field=field)
    return members
