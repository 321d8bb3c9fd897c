"""Limits of associations for machine.toml of an imported Slurm cluster, and the amounts that limits can name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from poolwise.errors import InputError
from poolwise.files.slurm_import.cluster import SlurmCluster, toml
from poolwise.slurm import durations
from poolwise.slurm.associations import LIMITS, SlurmAssociation, read_associations
from poolwise.slurm.dumps import tres_amounts

SCOPES: Final[Mapping[str, tuple[str, bool]]] = {
    "MaxTRES": ("per_job", False), "MaxJobs": ("per_user", True), "GrpTRES": ("total", False), "GrpJobs": ("total", True),
}  # fmt: skip
"""Column of `sacctmgr show assoc` -> key of `[[association]]`, and whether it is a number of jobs."""
WALL: Final = "MaxWall"
"""Column with the longest time that a job may request."""


def association_lines(cluster: SlurmCluster, dump: Path) -> list[str]:
    """Return the limits of associations; note those that are left out.

    An account without limits is listed only if an account above it has limits.
    """
    associations, lines = _one_each(cluster, dump, read_associations(dump)), list[str]()
    limited = [each for each in associations if {*each.limits} & {WALL, *SCOPES}]
    enforced = {word.strip().lower() for word in cluster.conf.text("AccountingStorageEnforce", "").split(",")}
    missing = "" if not limited or "Account" in cluster.columns else "the log has no Account"
    if limited and not enforced & {"limits", "safe", "all", "2"}:
        missing = "AccountingStorageEnforce of slurm.conf lacks limits, so Slurm does not apply them"
    _note_others(cluster, dump, associations, missing)
    if missing or not limited:
        return lines
    accounts = {each.account: each for each in associations if not each.user}
    listed = {each.account for each in limited if not each.user}
    listed |= {name for name in accounts if listed & {*_above(name, accounts)}}
    for each in associations:
        if not each.user and each.account not in listed:
            continue
        content = [*_entries(cluster, dump, each, _own_limits(each, accounts))]
        parent = next((name for name in _above(each.account, accounts) if name in listed), "") if not each.user else ""
        if each.user and not content:
            continue
        lines += ["", "[[association]]", f"account = {toml(each.account)}  # {dump.name}:{each.line}"]
        lines += [f"user = {toml(each.user)}"] if each.user else []
        lines += [f"parent = {toml(parent)}"] if parent else []
        lines += content
    return lines


def _one_each(cluster: SlurmCluster, dump: Path, associations: list[SlurmAssociation]) -> list[SlurmAssociation]:
    """Return the first association of each account and user; note duplicates, and associations with single partitions."""
    first: dict[tuple[str, str], SlurmAssociation] = {}
    for each in associations:
        if each.partition:
            cluster.leave_out(f"{dump.name}:{each.line}: limits of {_label(each)} in partition {each.partition} are left out")
        elif first.setdefault((each.account, each.user), each) is not each:
            cluster.leave_out(f"{dump.name}:{each.line}: a further association of {_label(each)} is left out")
    return [*first.values()]


def _above(account: str, accounts: Mapping[str, SlurmAssociation]) -> Iterator[str]:
    """Yield the accounts above an account, from its parent up to the root."""
    seen = {account}
    while account in accounts and (account := accounts[account].parent) and account not in seen:
        seen.add(account)
        yield account


def _own_limits(association: SlurmAssociation, accounts: Mapping[str, SlurmAssociation]) -> dict[str, str]:
    """Return the limits of an association other than those that `sacctmgr show assoc` repeats from the accounts above."""
    above = [association.account] if association.user else []
    above += _above(association.account, accounts)
    own = dict(association.limits)
    for column in ("MaxTRES", "MaxJobs", WALL):
        inherited = next((accounts[name].limits[column] for name in above if column in accounts[name].limits), None)
        if column in own and own[column] == inherited:
            del own[column]
    return own


def _entries(cluster: SlurmCluster, dump: Path, association: SlurmAssociation, own: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines with the limits of an association; note amounts that the machine cannot limit."""
    if WALL in own:
        try:
            yield f'max_time = "{duration_text(durations.seconds(own[WALL]))}"'
        except ValueError as error:
            raise InputError(str(error), file=dump, line=association.line, field=WALL, remedy="correct the row") from None
    scopes = dict[str, dict[str, int]]()
    for column, (scope, counts_jobs) in SCOPES.items():
        text = own.get(column, "")
        scopes.setdefault(scope, {}).update(
            tres_amounts(f"jobs={text}" if counts_jobs and text else text, dump, association.line, column)
        )
    for scope, limits in scopes.items():
        yield from limit_line(cluster, f"{dump.name}:{association.line}", _label(association), scope, limits)


def limit_line(cluster: SlurmCluster, place: str, owner: str, scope: str, limits: Mapping[str, int]) -> list[str]:
    """Return the line with the limits on amounts, given by Slurm's names; note amounts that the machine cannot limit."""
    if scope == "per_user" and limits and "User" not in cluster.columns:
        cluster.leave_out(f"{place}: limits per user are not applied: the log has no User")
        return []
    names = limited_amounts(cluster)
    for name in sorted({*limits} - {*names}):
        cluster.leave_out(f"{place}: the limit {name}={limits[name]} of {owner} is not applied")
    entries = ", ".join(f"{names[name]} = {value}" for name, value in limits.items() if name in names)
    return [f"{scope} = {{ {entries} }}"] if entries else []


def _note_others(cluster: SlurmCluster, dump: Path, associations: list[SlurmAssociation], why: str) -> None:
    """Record each kind of limit that is not applied, once; `why` states why none is applied, and is empty if some are."""
    for column in LIMITS:
        applied = column in (WALL, *SCOPES)
        if (why or not applied) and (having := [each for each in associations if column in each.limits]):
            first, count = having[0], f"{len(having):,} associations" if len(having) > 1 else "an association"
            example = f"such as {first.limits[column]} of {_label(first)}"
            reason = why if applied else "it is not modeled"
            cluster.leave_out(f"{dump.name}:{first.line}: {column} of {count}, {example}, is left out: {reason}")


def _label(association: SlurmAssociation) -> str:
    user = f"user {association.user} in " if association.user else ""
    return f"{user}account {association.account}"


def limited_amounts(cluster: SlurmCluster) -> dict[str, str]:
    """Return the amounts that machine.toml can limit: name in Slurm -> name in machine.toml."""
    amounts = {"node": "nodes", "jobs": "jobs", "cpu": "cores", "mem": "memory"}
    if any(size.gpus for size in cluster.sizes.values()):
        amounts["gres/gpu"] = "gpu"
    return amounts


def duration_text(seconds: int) -> str:
    """Format a time in the largest unit that gives a whole number."""
    size, unit = next((size, unit) for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")) if seconds % size == 0)
    return f"{seconds // size} {unit}"
