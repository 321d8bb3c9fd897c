"""Summaries of resources that jobs hold: ranges of nodes with equal amounts, and the largest holders of a resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.model import Job, Kind, Machine, Placement, Snapshot
from poolwise.model.eligibility import NO_PARTITION, eligible_owners, eligible_sets, taking_partitions
from poolwise.model.licenses import LICENSE

MOST_RANGES = 4
"""Number of ranges of nodes that a summary lists."""
MOST_HOLDERS = 3
"""Number of holders of a resource that an episode lists."""

_MEASURED = ("memory", "storage")


@dataclass(frozen=True, slots=True)
class Holder:
    """Running job that holds a resource on nodes that another job may use.

    Attributes
    ----------
    job : row of the job table
    amount : amount held, base units; number of nodes if no single resource was short
    until : expected end of its last run, ns
    """

    job: int
    amount: int
    until: int


def holders(snapshot: Snapshot, job: int, resource: str) -> tuple[Holder, ...]:
    """Return the jobs that hold most of a resource on the owners that a given job (a row) may use, largest amount first.

    Pools count as usable. A job holds its licenses wherever it runs. Without a resource, the nodes on which a job holds
    anything are counted.
    """
    machine, table = snapshot.machine, snapshot.table
    sets = eligible_sets(machine, table)
    usable = eligible_owners(machine, *sets.value[int(sets.of[job])]) | (machine.kind != Kind.NODE)
    if resource == "nodes" and resource not in machine.resources:  # on shared nodes
        resource = ""
    column = machine.resources.index(resource) if resource in machine.resources else -1
    licenses = table.attributes[resource] if resource.startswith(LICENSE) else None
    held: dict[int, list[int]] = {}
    for run in snapshot.runs():
        amount = _held(run.placement, machine, usable, resource, column) if licenses is None else int(licenses[run.job])
        if amount:
            total = held.setdefault(run.job, [0, 0])
            total[0] = amount if licenses is not None else total[0] + amount  # once for all runs of a job
            total[1] = max(total[1], run.expected_end)
    largest = sorted(held.items(), key=lambda item: (-item[1][0], item[0]))[:MOST_HOLDERS]
    return tuple(Holder(row, amount, until) for row, (amount, until) in largest)


def _held(placement: Placement, machine: Machine, usable: BoolArray, resource: str, column: int) -> int:
    here = usable[placement.owner]
    if column >= 0:
        return int(placement.amount[here & (placement.resource == column)].sum())
    if resource:  # a type of device
        return sum(
            int(n)
            for owner, n in zip(placement.owner[here], placement.amount[here], strict=True)
            if machine.type[owner] == resource
        )
    return len(np.unique(placement.owner[here & (machine.kind[placement.owner] == Kind.NODE)]))


def partition_of(job: Job, machine: Machine) -> str:
    """Return the names of the partitions that accept a job, separated by commas; empty on a machine without partitions."""
    if not machine.partitions:
        return ""
    name = str(taking_partitions(machine, job.table, slice(job.index, job.index + 1))[0])
    return "" if name == NO_PARTITION else name


def amount_with_name(machine: Machine, resource: str, amount: int) -> str:
    """Format an amount with the name of its resource: "48 cores", "1 node", "96 GiB"."""
    text = machine.amount_text(resource, amount)
    if resource in _MEASURED:
        return text
    if resource.startswith(LICENSE):
        return f"{text} {'license' if text == '1' else 'licenses'} '{resource.removeprefix(LICENSE)}'"
    return f"{text} {resource.removesuffix('s') if text == '1' else resource}"


def placement_text(placement: Placement, machine: Machine) -> str:
    """Describe a placement, with nodes of equal amounts as ranges: "32 nodes c9 to c40, each 48 cores and 96 GiB"."""
    held: dict[int, dict[str, int]] = {}
    for _, owner, resource, amount in placement.rows():
        of_owner = held.setdefault(owner, {})
        name = machine.resources[resource]
        of_owner[name] = of_owner.get(name, 0) + amount
    groups: dict[tuple[str, tuple[tuple[str, int], ...]], list[int]] = {}
    for owner in sorted(held):
        groups.setdefault((_noun(machine, owner), tuple(held[owner].items())), []).append(owner)
    return "; ".join(_group_text(machine, noun, dict(each), owners) for (noun, each), owners in groups.items())


def _noun(machine: Machine, owner: int) -> str:
    kind = Kind(int(machine.kind[owner]))
    return machine.type[owner] if kind is Kind.DEVICE else kind.name.lower()


def _group_text(machine: Machine, noun: str, each: Mapping[str, int], owners: list[int]) -> str:
    amounts = and_list(amount_with_name(machine, name, amount) for name, amount in each.items())
    if len(owners) == 1:
        return f"{machine.owners[owners[0]]} ({amounts})"
    ranges = list(_ranges(machine, owners))
    more = sum(count for count, _ in ranges[MOST_RANGES:])
    listed = [text for _, text in ranges[:MOST_RANGES]] + ([f"{more:,} more"] if more else [])
    suffix = "" if noun.endswith("s") else "s"
    return f"{len(owners):,} {noun}{suffix} {and_list(listed)}, each {amounts}"


def _ranges(machine: Machine, owners: list[int]) -> Iterator[tuple[int, str]]:
    """Yield the length and text of each range of owners that are consecutive within their type and rack."""
    follows: dict[int, int] = {}  # owner -> the one before it of its type and rack
    newest: dict[tuple[str, int], int] = {}
    for owner in range(machine.n_owner):
        of = str(machine.type[owner]), int(machine.rack[owner])
        follows[owner], newest[of] = newest.get(of, -1), owner
    first = last = owners[0]
    count = 1
    for owner in [*owners[1:], -1]:
        if owner >= 0 and follows[owner] == last:
            last, count = owner, count + 1
            continue
        name = machine.owners[first]
        yield count, name if first == last else f"{name} to {machine.owners[last]}"
        first, last, count = owner, owner, 1


def and_list(parts: Iterable[str]) -> str:
    """Join parts by commas and "and"."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
