"""Dumps of Slurm's accounting: the tree of shares (`sshare -a -l -P`) and the qualities of service.

Both are tables with a header and columns separated by |, as written by `-P` (`--parsable2`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from poolwise.errors import InputError
from poolwise.slurm import durations


@dataclass(frozen=True)
class Association:
    """An account, or a user in an account.

    Attributes
    ----------
    account : name of the account
    user : name of the user, empty for the account itself
    parent : index of the parent account in the dump, -1 for the root
    shares : raw shares among its siblings
    usage : raw decayed usage (seconds times billing units)
    effective : effective usage as printed, NaN if the dump lacks it
    """

    account: str
    user: str
    parent: int
    shares: int
    usage: float
    effective: float = math.nan


SHARES_REMEDY = "write it with `sshare --all --long --parsable2`"
QOS_PREEMPT_REMEDY = (
    "write it with `sacctmgr --parsable2 show qos format=Name,Priority,Preempt,PreemptMode,PreemptExemptTime,GraceTime`"
)
QOS_REMEDY = "write it with `sacctmgr --parsable2 show qos format=Name,Priority`"


QOS_OTHERS = {
    "MaxTRES": "jobs of any size are accepted", "MaxTRESPerNode": "jobs of any size are accepted",
    "MinTRES": "jobs of any size are accepted", "MaxTRESMins": "jobs of any size are accepted",
    "GrpTRESMins": "used time is not limited", "GrpTRESRunMins": "the time that running jobs may still use is not limited",
    "GrpWall": "used time is not limited", "GrpSubmit": "any number of jobs may wait",
    "MaxSubmitPU": "any number of jobs may wait",
    "MaxSubmitPA": "any number of jobs may wait", "MaxTRESPA": "limits per account are not modeled",
    "MaxJobsPA": "limits per account are not modeled", "MaxTRESRunMinsPU": "the time of running jobs is not limited",
    "MaxTRESRunMinsPA": "the time of running jobs is not limited",
    "UsageFactor": "usage counts once", "UsageThres": "jobs of any usage are accepted", "LimitFactor": "limits count once",
    "Flags": "flags of QOS are not modeled",
}  # fmt: skip
"""Column of `sacctmgr show qos` that is not modeled -> what the simulation does instead."""
_DEFAULTS = {"UsageFactor": 1.0, "UsageThres": 0.0, "LimitFactor": 1.0}


@dataclass(frozen=True)
class QosLimits:
    """Limits of a quality of service: time of a job (s), -1 without a limit; amounts per user and in total, by Slurm's names.

    `others` are the values of the columns in `QOS_OTHERS` that differ from Slurm's defaults.
    """

    name: str
    line: int
    max_time: int
    per_user: Mapping[str, int]
    total: Mapping[str, int]
    others: Mapping[str, str] = field(default_factory=dict)


def read_shares(path: Path) -> tuple[Association, ...]:
    """Read the tree of shares, parents before children; raises InputError with file, line and field."""
    associations: list[Association] = []
    above: list[int] = []  # the last account at each depth
    for line, row in rows(path, ("Account", "User", "RawShares", "RawUsage"), SHARES_REMEDY):
        name, user = row["Account"], row["User"].strip()
        depth = len(name) - len(name.lstrip(" "))
        if depth > len(above) or (depth == 0 and associations):
            problem = "the account is indented deeper than its parent" if depth else "the dump has a second root"
            raise InputError(problem, file=path, line=line, field="Account", remedy=SHARES_REMEDY)
        if row["RawShares"].strip().lower() == "parent":
            problem = "shares of the parent (fairshare=parent) are not modeled"
            raise InputError(problem, file=path, line=line, field="RawShares", remedy="give the association its own shares")
        shares = _whole(row["RawShares"].strip() or "1", path, line, "RawShares")
        usage = _whole(row["RawUsage"].strip() or "0", path, line, "RawUsage")
        parent = above[depth - 1] if depth else -1
        if not user:
            above[depth:] = [len(associations)]
        effective = _share(row.get("EffectvUsage", "").strip(), path, line)
        associations.append(Association(name.strip(), user, parent, shares, float(usage), effective))
    if not any(association.user for association in associations):
        raise InputError("no user has shares", file=path, field="User", remedy=SHARES_REMEDY)
    return tuple(associations)


def read_priorities(path: Path) -> dict[str, int]:
    """Read the priorities of the qualities of service, by name; raises InputError with file, line and field."""
    table = rows(path, ("Name", "Priority"), QOS_REMEDY)
    return {row["Name"].strip(): _whole(row["Priority"].strip() or "0", path, line, "Priority") for line, row in table}


@dataclass(frozen=True)
class QosPreempt:
    """Preemption settings of a quality of service: the QOS that it preempts, and the mode and exempt time (s) of its jobs.

    The mode is in upper case, or empty if the mode of the cluster applies. The exempt time is `durations.FOREVER` if that of
    the cluster applies.
    """

    name: str
    line: int
    preempts: tuple[str, ...]
    mode: str
    exempt: int
    priority: int
    grace: bool


def read_qos_preemption(path: Path) -> list[QosPreempt]:
    """Read the preemption of the qualities of service; raises InputError with file, line and field."""
    preemption = []
    for line, row in rows(path, ("Name", "Preempt"), QOS_PREEMPT_REMEDY):
        cells = {key: value.strip() for key, value in row.items()}
        mode = cells.get("PreemptMode", "").upper()
        try:
            exempt = durations.seconds(cells["PreemptExemptTime"]) if cells.get("PreemptExemptTime") else durations.FOREVER
        except ValueError as error:
            raise InputError(str(error), file=path, line=line, field="PreemptExemptTime", remedy="correct the row") from None
        listed = tuple(name for name in cells["Preempt"].split(",") if name)
        priority = _whole(cells.get("Priority") or "0", path, line, "Priority")
        grace = any(digit not in "0:" for digit in cells.get("GraceTime", ""))
        preemption.append(QosPreempt(cells["Name"], line, listed, "" if mode == "CLUSTER" else mode, exempt, priority, grace))
    return preemption


def read_qos_limits(path: Path) -> list[QosLimits]:
    """Read the limits of qualities of service that a dump contains; raises InputError with file, line and field."""
    limits = []
    for line, row in rows(path, ("Name",), QOS_REMEDY):
        per_user, total = [
            {
                **tres_amounts(row.get(tres, ""), path, line, tres),
                **tres_amounts(row.get(jobs, "") and f"jobs={row[jobs]}", path, line, jobs),
            }
            for tres, jobs in (("MaxTRESPU", "MaxJobsPU"), ("GrpTRES", "GrpJobs"))
        ]
        try:
            longest = durations.seconds(row["MaxWall"]) if row.get("MaxWall") else durations.FOREVER
        except ValueError as error:
            raise InputError(str(error), file=path, line=line, field="MaxWall", remedy="correct the row") from None
        others = {name: row[name].strip() for name in QOS_OTHERS if not _is_default(name, row.get(name, "").strip())}
        limits.append(QosLimits(row["Name"].strip(), line, longest, per_user, total, others))
    return limits


def _is_default(name: str, text: str) -> bool:
    try:
        return not text or (name in _DEFAULTS and float(text) == _DEFAULTS[name])
    except ValueError:
        return False


def tres_amounts(text: str, path: Path, line: int, field: str) -> dict[str, int]:
    """Parse trackable resources such as "cpu=256,gres/gpu=8,mem=1T"; memory in MiB."""
    pairs = (part.partition("=") for part in text.strip().split(",") if part)
    sizes = {"M": 1, "G": 2**10, "T": 2**20}
    return {
        name: _whole(value[:-1] if name == "mem" and value[-1:] in sizes else value, path, line, field)
        * (sizes.get(value[-1:], 1) if name == "mem" else 1)
        for name, _, value in pairs
    }


def rows(path: Path, needed: tuple[str, ...], remedy: str) -> list[tuple[int, dict[str, str]]]:
    """Read a table with a header and columns separated by |; return the line and cells of each row. Raises InputError."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy=remedy) from None
    header = lines[0].rstrip("|").split("|") if lines else []
    for name in needed:
        if name not in header:
            raise InputError(f"the header lacks '{name}'", file=path, line=1, field=name, remedy=remedy)
    table = []
    for line, text in enumerate(lines[1:], start=2):
        if text.strip():
            cells = text.split("|")
            if len(cells) < len(header):
                raise InputError(f"expected {len(header)} cells, got {len(cells)}", file=path, line=line, remedy=remedy)
            table.append((line, dict(zip(header, cells, strict=False))))
    return table


def _share(text: str, path: Path, line: int) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        problem = f"'{text}' is not a number"
        raise InputError(problem, file=path, line=line, field="EffectvUsage", remedy="correct the row") from None


def _whole(text: str, path: Path, line: int, field: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        problem = f"'{text}' is not an integer of at least 0"
        raise InputError(problem, file=path, line=line, field=field, remedy="correct the row")
    return number
