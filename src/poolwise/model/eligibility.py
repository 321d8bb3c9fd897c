"""On which nodes a job may run: those of the partitions that it names, with all the features that it needs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import UnknownNameError
from poolwise.model.columns import Column, Kinds
from poolwise.model.job_table import JobTable
from poolwise.model.machine import Machine

PARTITION, CONSTRAINT = "partition", "constraint"
_NOTHING = ("", "-1")  # SWF numbers the partitions, and writes -1 for none


def eligible_sets(machine: Machine, table: JobTable) -> Kinds:
    """Number of each job's set of eligible nodes; `eligible_owners(machine, *value)` gives the set with a value.

    A job's attribute "partition" names one of the machine's `node_sets` or several, separated by commas, of which any
    will do; "constraint" names sets joined by "&", in all of which its nodes must be. A job that names none may run
    anywhere, and where the machine has no sets all jobs may.
    """
    limited = bool(machine.node_sets)
    return table.kinds(("eligible", limited), lambda table, rows: _named(table, rows, limited))


def _named(table: JobTable, rows: slice, limited: bool) -> tuple[Column, Column]:
    """(k,) partitions and (k,) constraints of some rows, as text."""
    empty = np.full(len(table.submit[rows]), "")
    found = (table.attributes.get(name) if limited else None for name in (PARTITION, CONSTRAINT))
    partition, constraint = (empty if column is None else column[rows].astype(np.str_) for column in found)
    return partition, constraint


@lru_cache(maxsize=1024)  # a machine is compared by identity
def eligible_owners(machine: Machine, partition: str, constraint: str) -> BoolArray:
    """(n_owner,) owners on which a job may run that names these; raises InputError for a set that the machine lacks."""
    found = np.ones(machine.n_owner, dtype=np.bool_)
    if partition not in _NOTHING and machine.node_sets:
        found = np.any([_members(machine, name, PARTITION) for name in partition.split(",")], axis=0)
    if constraint not in _NOTHING and machine.node_sets:
        found = np.all([found, *(_members(machine, name, CONSTRAINT) for name in constraint.split("&"))], axis=0)
    found.setflags(write=False)
    return found


def _members(machine: Machine, name: str, field: str) -> BoolArray:
    members = machine.node_sets.get(name.strip())
    if members is None:
        raise UnknownNameError.of(field, name.strip(), machine.node_sets, field=field)
    return members
