"""What Slurm's clients print, as plain records. Every line is read strictly: what is not understood is an error.

Users write their own comments. So the separators are drawn anew in each process: no comment can hold them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from poolwise.errors import InputError
from poolwise.live.slurm.client_calls import ask
from poolwise.slurm import durations, hostlist
from poolwise.units import SECOND, UNKNOWN, parse

T = TypeVar("T")

_DRAWN = secrets.token_hex(4)
_FIELD, _END = f"\x1f{_DRAWN}\x1f", f"\x1e{_DRAWN}\x1e"
JOB_FIELDS = (
    "JobArrayID", "JobID", "State", "Partition", "UserID", "NumCPUs", "tres", "TimeLimit", "SubmitTime",
    "StartTime", "NodeList", "ReqNodes", "Licenses", "PriorityLong", "Reason", "Dependency", "RestartCnt",
    "Comment",
)  # fmt: skip
NODE_FIELDS = ("NodeList", "StateLong", "CPUs", "Memory", "Features")
AT_WORK = frozenset(
    ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "POWER_UP_NODE")
)
"""States of jobs that have nodes."""
USABLE = frozenset(("idle", "mixed", "allocated", "completing", "planned", "allocated+", "power_saving", "powered_down"))
"""Extended states of nodes that jobs can be given; a sign behind the state says that something is wrong."""
_ID = re.compile(r"\d+(_\d+)?(\+\d+)?")
_WORD = re.compile(r"[\w.:@/+-]+")
SAID = " | poolwise: "
"""What stands between a user's comment and what Poolwise says of the job."""


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job, a task of an array, or a component of a heterogeneous job.

    Attributes
    ----------
    name : what users call it: 12, 12_3 (task of an array), 12+1 (component)
    number : what Slurm counts it by
    state, partition, reason : as Slurm writes them
    user : number of the user
    nodes, cpus, memory : asked of all its nodes together (MiB)
    limit : ns, `units.UNKNOWN` where there is none
    submit, start : ns since 1970; the start is None where Slurm names none. Of a pending job it is when it may begin
    allocated, required, excluded : names of nodes that it has, that it must have, and that it must not have; the last are
        read of components alone
    licences : name -> count
    priority : 0 where it is held
    dependent : whether it waits for other jobs
    restarts : times that it was requeued
    comment : what its user said
    said : what Poolwise has said behind it
    """

    name: str
    number: int
    state: str
    partition: str
    user: int
    nodes: int
    cpus: int
    memory: int
    limit: int
    submit: int
    start: int | None
    allocated: tuple[str, ...]
    required: frozenset[str]
    excluded: frozenset[str]
    licences: Mapping[str, int]
    priority: int
    reason: str
    dependent: bool
    restarts: int
    comment: str
    said: str

    @property
    def held(self) -> bool:
        """Whether somebody holds it."""
        return self.priority == 0

    @property
    def held_by_user(self) -> bool:
        """Whether its own user holds it, or an administrator in the user's name (`scontrol uhold`)."""
        return self.held and self.reason == "JobHeldUser"


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node of the partition.

    Attributes
    ----------
    usable : whether jobs can be given it now
    cpus, memory : what it has (MiB)
    """

    name: str
    usable: bool
    cpus: int
    memory: int
    features: tuple[str, ...]


@dataclass(frozen=True)
class ClusterListing:
    """Slurm at one instant.

    Attributes
    ----------
    jobs : all jobs that are pending or at work, of all partitions
    nodes : the partition's nodes, by name
    licences : name -> how many can be had by jobs, reserved ones left out
    """

    jobs: tuple[SlurmJob, ...]
    nodes: Mapping[str, SlurmNode]
    licences: Mapping[str, int]

    @cached_property
    def gangs(self) -> dict[str, tuple[SlurmJob, ...]]:
        """Name of a job -> its components."""
        return gangs_of(self.jobs)


def gangs_of(jobs: Iterable[SlurmJob]) -> dict[str, tuple[SlurmJob, ...]]:
    """Name of a job -> its components, one where it is not heterogeneous; the leader stands first."""
    found: dict[str, list[SlurmJob]] = {}
    for job in jobs:
        found.setdefault(job.name.partition("+")[0], []).append(job)
    return {name: tuple(sorted(parts, key=lambda part: part.number)) for name, parts in found.items()}


def read_cluster(partition: str) -> ClusterListing:
    """Read jobs, nodes and licences; raises SlurmTimeoutError, and InputError for what is not understood."""
    nodes = {node.name: node for node in read_nodes(partition)}
    return ClusterListing(tuple(read_jobs(most_cpus(nodes))), nodes, read_licences())


def most_cpus(nodes: Mapping[str, SlurmNode]) -> int:
    """CPUs of the widest node, 1 where there is none."""
    return max((node.cpus for node in nodes.values()), default=1)


def read_jobs(widest: int, names: tuple[str, ...] = ()) -> list[SlurmJob]:
    """Read all jobs that are pending or at work, or some of them.

    `widest`, the CPUs of the widest node, says how many nodes a pending job needs that asked for CPUs alone. (What squeue
    prints as NumNodes is too high by one for pending jobs with several CPUs a task.)
    """
    ends = [_FIELD] * (len(JOB_FIELDS) - 1) + [_END]
    fields = ",".join(f"{name}:0{end}" for name, end in zip(JOB_FIELDS, ends, strict=True))
    some = ("--jobs", ",".join(names)) if names else ()
    jobs = [_job(row, widest) for row in _rows(ask("squeue", "--noheader", "--array", *some, "--Format", fields), JOB_FIELDS)]
    if not any("+" in job.name for job in jobs):
        return jobs
    text = ask("squeue", "--noheader", "--array", *some, "--format", f"%i{_FIELD}%x{_END}")  # the longer form lacks it
    excluded = {row["name"]: frozenset(_read(row, "excluded", hostlist.expand)) for row in _rows(text, ("name", "excluded"))}
    return [replace(job, excluded=excluded.get(job.name, frozenset())) for job in jobs]


def read_nodes(partition: str) -> list[SlurmNode]:
    """Read the nodes of a partition."""
    ends = [_FIELD] * (len(NODE_FIELDS) - 1) + [_END]
    fields = ",".join(f"{name}:0{end}" for name, end in zip(NODE_FIELDS, ends, strict=True))
    text = ask("sinfo", "--noheader", "--Node", "--partition", partition, "--Format", fields)
    found = []
    for row in _rows(text, NODE_FIELDS):
        features = tuple(word for word in row["Features"].split(",") if word and word != "(null)")
        name, state = _word(row["NodeList"], "NodeList"), row["StateLong"]
        found.append(SlurmNode(name, state in USABLE, _whole(row, "CPUs"), _whole(row, "Memory"), features))
    return found


def read_licences() -> dict[str, int]:
    """Read how many of each licence jobs can be given: all but those that are reserved."""
    found = {}
    for line in ask("scontrol", "--oneliner", "show", "licenses").splitlines():
        said = dict(word.partition("=")[::2] for word in line.split())
        if "LicenseName" in said:
            found[_word(said["LicenseName"], "LicenseName")] = _whole(said, "Total") - (
                _whole(said, "Reserved") if said.get("Reserved") else 0
            )
    return found


def read_racks(nodes: Mapping[str, SlurmNode]) -> dict[str, str]:
    """Read the rack of each node: its leaf switch, else its feature that begins with "rack", else "rack0"."""
    switches: dict[str, str] = {}
    for line in ask("scontrol", "--oneliner", "show", "topology").splitlines():
        said = dict(word.partition("=")[::2] for word in line.split())
        if said.get("Level") == "0" and "SwitchName" in said:
            switches.update(dict.fromkeys(hostlist.expand(said.get("Nodes", "")), said["SwitchName"]))
    racks = {}
    for name, node in nodes.items():
        feature = next((word for word in node.features if word.startswith("rack")), "rack0")
        racks[name] = switches.get(name, feature)
    return racks


def default_partition() -> str:
    """Name of the partition of jobs that name none; raises InputError where there is none."""
    for name in ask("sinfo", "--noheader", "--format", "%P").split():
        if name.endswith("*"):
            return name.removesuffix("*")
    raise InputError("the cluster has no default partition", field="--partition", remedy="name one with --partition")


def is_exclusive(partition: str) -> bool:
    """Whether jobs of a partition take whole nodes; raises InputError for an unknown partition."""
    for line in ask("scontrol", "--oneliner", "show", "partition").splitlines():
        said = dict(word.partition("=")[::2] for word in line.split())
        if said.get("PartitionName") == partition:
            return said.get("OverSubscribe", "").upper() == "EXCLUSIVE"
    raise InputError(f"the cluster has no partition '{partition}'", field="--partition", remedy="see `sinfo`")


def _rows(text: str, names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for number, record in enumerate(text.split(_END)[:-1], start=1):
        cells = record.removeprefix("\n").split(_FIELD)
        if len(cells) != len(names):
            raise InputError(f"{len(cells)} fields, not {len(names)}", file="Slurm", line=number, remedy=_REMEDY)
        yield dict(zip(names, cells, strict=True))


def _job(row: Mapping[str, str], widest: int) -> SlurmJob:
    """Make a record of a row of squeue."""
    name = row["JobArrayID"]
    if not _ID.fullmatch(name):
        raise _bad("JobArrayID", name)
    comment, _, said = (row["Comment"] if row["Comment"] != "(null)" else "").partition(SAID.strip())
    start, cpus = row["StartTime"], _whole(row, "NumCPUs")
    return SlurmJob(
        name,
        _whole(row, "JobID"),
        row["State"],
        row["Partition"],
        _whole(row, "UserID"),
        max(_read(row, "tres", _nodes), -(-cpus // widest)),
        cpus,
        _read(row, "tres", _memory),
        _read(row, "TimeLimit", _limit),
        _whole(row, "SubmitTime") * SECOND,
        int(start) * SECOND if start.isdigit() else None,
        tuple(_read(row, "NodeList", hostlist.expand)),
        frozenset(_read(row, "ReqNodes", hostlist.expand)),
        frozenset(),
        _read(row, "Licenses", licences_of),
        _whole(row, "PriorityLong"),
        row["Reason"],
        row["Dependency"] not in ("", "(null)"),
        _whole(row, "RestartCnt"),
        comment.strip(),
        said.strip(),
    )


def licences_of(text: str) -> dict[str, int]:
    """Read a job's licences, `name:count` or `name` between commas; raises ValueError."""
    found: dict[str, int] = {}
    for part in text.split(",") if text not in ("", "(null)") else ():
        name, _, count = part.strip().rpartition(":") if ":" in part else (part.strip(), "", "1")
        if not _WORD.fullmatch(name) or not count.isdigit():
            raise ValueError(f"'{part}' is not NAME:COUNT")
        found[name] = found.get(name, 0) + int(count)
    return found


def _nodes(text: str) -> int:
    """Nodes among trackable resources such as "cpu=2,mem=600M,node=1"; raises ValueError where there are none."""
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name == "node":
            return int(value)
    raise ValueError("no node")


def _memory(text: str) -> int:
    """MiB among trackable resources such as "cpu=2,mem=600M,node=1"."""
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name == "mem":
            return parse(f"{value[:-1]}{value[-1]}iB" if value[-1:] in tuple("KMGTP") else f"{value}MiB", "memory")
    return 0


def _limit(text: str) -> int:
    if text in ("NOT_SET", "INVALID", "Partition_Limit", ""):
        return UNKNOWN
    found = durations.seconds(text)
    return UNKNOWN if found == durations.FOREVER or found >= 360 * 86400 else found * SECOND


def _word(text: str, field: str) -> str:
    if not _WORD.fullmatch(text):
        raise _bad(field, text)
    return text


def _whole(row: Mapping[str, str], field: str) -> int:
    text = row.get(field, "")
    if not text.isdigit():
        raise _bad(field, text)
    return int(text)


def _read(row: Mapping[str, str], field: str, read: Callable[[str], T]) -> T:
    try:
        return read("" if row[field] == "(null)" else row[field])
    except ValueError as error:
        raise _bad(field, row[field]) from error


def _bad(field: str, text: str) -> InputError:
    return InputError(f"'{text}' is not understood", file="Slurm", field=field, remedy=_REMEDY)


_REMEDY = "report it with the version of Slurm (`sinfo --version`); 22.05 is known to work"
