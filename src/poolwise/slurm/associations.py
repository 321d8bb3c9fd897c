"""Associations of Slurm's accounting: accounts and users with their shares and limits.

Source: sacctmgr(1) of Slurm 23.02, "show associations" and "dump"; the header of an association column is that of `sacctmgr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from poolwise.errors import InputError
from poolwise.slurm.dumps import rows

REMEDY: Final = "write it with `sacctmgr --parsable2 show assoc tree`, or with `sacctmgr dump CLUSTER file=FILE`"
LIMITS: Final = {
    "GrpJobs": "GrpJobs", "GrpTRES": "GrpTRES", "GrpTRESMins": "GrpTRESMins", "GrpTRESRunMins": "GrpTRESRunMins",
    "GrpSubmit": "GrpSubmitJobs", "GrpWall": "GrpWall", "MaxJobs": "MaxJobs", "MaxTRES": "MaxTRESPerJob",
    "MaxTRESPerNode": "MaxTRESPerNode", "MaxTRESMins": "MaxTRESMinsPerJob", "MaxSubmit": "MaxSubmitJobs",
    "MaxWall": "MaxWallDurationPerJob", "Priority": "Priority",
}  # fmt: skip
"""Limits and the priority of an association: column of `show assoc` -> key of `dump`."""
_ENTRY = re.compile(r"(Cluster|Parent|Account|User) - '?([^':]*)'?(?::(.*))?\Z")
_VALUE = re.compile(r"([A-Za-z]+)=('[^']*'|[^:]*)(?::|\Z)")
_NO_LIMIT = ("", "-1")


@dataclass(frozen=True)
class SlurmAssociation:
    """An account (`user` is empty), or a user in an account, with its parent account, share and limits by column.

    A user may have additional associations with single partitions.
    """

    line: int
    account: str
    user: str
    parent: str
    share: str
    limits: Mapping[str, str] = field(default_factory=dict)
    partition: str = ""


def read_associations(path: Path) -> list[SlurmAssociation]:
    """Read the output of `sacctmgr show assoc`, or of `sacctmgr dump`; raises InputError with file, line and field."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy=REMEDY) from None
    match = list(_dumped(path, text.splitlines()) if re.search(r"^Cluster - ", text, re.MULTILINE) else _shown(path))
    if not any(association.user for association in match):
        raise InputError("no association has a user", file=path, field="User", remedy=REMEDY)
    return match


def shares_text(associations: list[SlurmAssociation], path: Path) -> str:
    """Return the shares in the format of `sshare`, without usage; raises InputError for shares that no tree can have."""
    below: dict[str, list[SlurmAssociation]] = {}
    for entry in associations:
        if not entry.share.isdigit():
            problem = f"share '{entry.share}' is not modeled"
            raise InputError(problem, file=path, line=entry.line, field="Share", remedy="give the association its own shares")
        below.setdefault(entry.account if entry.user else entry.parent, []).append(entry)
    roots = [entry for entry in associations if not entry.user and entry.parent == ""]
    if len(roots) != 1:
        raise InputError(f"{len(roots)} accounts have no parent", file=path, field="Account", remedy=REMEDY)
    lines = ["Account|User|RawShares|RawUsage"]

    def add(association: SlurmAssociation, depth: int) -> None:
        lines.append(f"{' ' * depth}{association.account}|{association.user}|{association.share}|0")
        if not association.user:
            for inner in sorted(below.get(association.account, ()), key=lambda inner: not inner.user):
                add(inner, depth + 1)

    add(roots[0], 0)
    if len(lines) - 1 < len(associations):
        problem = f"{len(associations) - len(lines) + 1} associations are not below {roots[0].account}"
        raise InputError(problem, file=path, field="Account", remedy=REMEDY)
    return "\n".join(lines) + "\n"


def _shown(path: Path) -> Iterator[SlurmAssociation]:
    """Yield the rows of `sacctmgr show assoc`, which indents accounts as a tree or names their parents."""
    above: list[str] = []
    for line, row in rows(path, ("Account", "User"), REMEDY):
        name, user = row["Account"], row["User"].strip()
        account, depth = name.strip(), len(name) - len(name.lstrip(" "))
        parent = next((row[key].strip() for key in ("Par Name", "ParentName") if key in row), None)
        if parent is None:
            parent = above[depth - 1] if 0 < depth <= len(above) else ""
        if not user:
            above[depth:] = [account]
        limits = {key: row[key].strip() for key in LIMITS if row.get(key, "").strip() not in _NO_LIMIT}
        share, partition = row.get("Share", "1").strip() or "1", row.get("Partition", "").strip()
        yield SlurmAssociation(line, account, user, "" if user else parent, share, limits, partition)


def _dumped(path: Path, lines: list[str]) -> Iterator[SlurmAssociation]:
    """Yield the associations of `sacctmgr dump`."""
    parent = "root"
    for line, text in enumerate(lines, start=1):
        if not text.strip() or text.startswith("#"):
            continue
        match = _ENTRY.match(text.strip())
        if match is None:
            raise InputError(f"cannot parse '{text[:40]}'", file=path, line=line, remedy=REMEDY)
        kind, name, rest = match.groups()
        values = {key: value.strip("'") for key, value in _VALUE.findall(rest or "")}
        limits = {key: values[dumped] for key, dumped in LIMITS.items() if values.get(dumped, "") not in _NO_LIMIT}
        share = values.get("Fairshare", "1")
        if kind == "Parent":
            parent = name
        elif kind == "Cluster":
            yield SlurmAssociation(line, "root", "", "", share, limits)
        elif kind == "Account":
            yield SlurmAssociation(line, name, "", parent, share, limits)
        else:
            yield SlurmAssociation(line, parent, name, "", share, limits, values.get("Partition", ""))
