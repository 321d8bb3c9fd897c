"""Parser for the output of Slurm's clients. It is strict: an unexpected field raises InputError.

Comments contain arbitrary user text. The separators are therefore random per process, so that no comment can contain them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from poolwise.errors import InputError
from poolwise.live.slurm.client_calls import run_client
from poolwise.quantities import SECOND, UNKNOWN, parse
from poolwise.slurm import durations, hostlist
from poolwise.slurm.cluster import pairs

T = TypeVar("T")

_NONCE = secrets.token_hex(4)
_FIELD_END, _RECORD_END = f"\x1f{_NONCE}\x1f", f"\x1e{_NONCE}\x1e"
JOB_FIELDS = (
    "JobArrayID", "JobID", "State", "Partition", "UserID", "NumCPUs", "tres", "TimeLimit", "SubmitTime",
    "StartTime", "NodeList", "ReqNodes", "Licenses", "PriorityLong", "Reason", "Dependency", "RestartCnt",
    "Comment",
)  # fmt: skip
NODE_FIELDS = ("NodeList", "StateLong", "CPUs", "Memory", "Features")
ALLOCATED_STATES = frozenset(
    ("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "POWER_UP_NODE")
)
"""States of jobs that hold nodes."""
USABLE_STATES = frozenset(("idle", "mixed", "allocated", "completing", "planned", "allocated+", "power_saving", "powered_down"))
"""Extended states of nodes that can run jobs; a flag character after the state marks a problem."""
_ID = re.compile(r"\d+(_\d+)?(\+\d+)?")
_WORD = re.compile(r"[\w.:@/+-]+")
NOTE_SEPARATOR = " | poolwise: "
"""Separator between the user's comment and the note that Poolwise appends to it."""


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job, an array task, or a component of a heterogeneous job.

    Attributes
    ----------
    name : the name that users see: 12, 12_3 (array task), 12+1 (component)
    number : job id
    state, partition, reason : as Slurm writes them
    user : numeric user id
    nodes, cpus, memory : request for all nodes together (memory in MiB)
    limit : time limit (ns), `units.UNKNOWN` without one
    submit, start : ns since 1970; the start of a pending job is the earliest possible one, None if Slurm reports none
    allocated, required, excluded : names of nodes that the job holds, requires and excludes; excluded nodes are read for
        components of heterogeneous jobs only
    licenses : name -> count
    priority : 0 if the job is held
    dependent : whether the job has unsatisfied dependencies
    restarts : number of times that the job was requeued
    comment : the user's part of the comment
    note : the part that Poolwise appended
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
    licenses: Mapping[str, int]
    priority: int
    reason: str
    dependent: bool
    restarts: int
    comment: str
    note: str

    @property
    def held(self) -> bool:
        """True if the job is held by its user or an administrator."""
        return self.priority == 0

    @property
    def held_by_user(self) -> bool:
        """True if the job is held by its user, or by an administrator in the user's name (`scontrol uhold`)."""
        return self.held and self.reason == "JobHeldUser"


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node of the partition.

    Attributes
    ----------
    usable : whether jobs can be started on it now
    cpus, memory : configured size (memory in MiB)
    features : its available features
    """

    name: str
    usable: bool
    cpus: int
    memory: int
    features: tuple[str, ...]


@dataclass(frozen=True)
class ClusterListing:
    """Jobs, nodes and licenses of Slurm at one instant.

    Attributes
    ----------
    jobs : all pending and running jobs of all partitions
    nodes : nodes of the partition, by name
    licenses : name -> number that jobs can use, without reserved ones
    """

    jobs: tuple[SlurmJob, ...]
    nodes: Mapping[str, SlurmNode]
    licenses: Mapping[str, int]

    @cached_property
    def gangs(self) -> dict[str, tuple[SlurmJob, ...]]:
        """Job name -> its components."""
        return group_components(self.jobs)


def group_components(jobs: Iterable[SlurmJob]) -> dict[str, tuple[SlurmJob, ...]]:
    """Group components by job name; the leader comes first, and a job that is not heterogeneous has one component."""
    components: dict[str, list[SlurmJob]] = {}
    for job in jobs:
        components.setdefault(job.name.partition("+")[0], []).append(job)
    return {name: tuple(sorted(parts, key=lambda part: part.number)) for name, parts in components.items()}


def read_cluster(partition: str) -> ClusterListing:
    """Read jobs, nodes and licenses; raises SlurmTimeoutError, or InputError if the output cannot be parsed."""
    nodes = {node.name: node for node in read_nodes(partition)}
    return ClusterListing(tuple(read_jobs(max_cpus(nodes))), nodes, read_licenses())


def max_cpus(nodes: Mapping[str, SlurmNode]) -> int:
    """Return the largest number of CPUs of a node, 1 without nodes."""
    return max((node.cpus for node in nodes.values()), default=1)


def read_jobs(widest: int) -> list[SlurmJob]:
    """Read all pending and running jobs.

    `widest`, the largest number of CPUs of a node, gives the number of nodes for pending jobs that request CPUs only. (The
    NumNodes of squeue is too high by one for pending jobs with several CPUs per task.)
    """
    ends = [_FIELD_END] * (len(JOB_FIELDS) - 1) + [_RECORD_END]
    fields = ",".join(f"{name}:0{end}" for name, end in zip(JOB_FIELDS, ends, strict=True))
    text = run_client("squeue", "--noheader", "--array", "--Format", fields)
    jobs = [_parse_job(row, widest) for row in _rows(text, JOB_FIELDS)]
    if not any("+" in job.name for job in jobs):
        return jobs
    # excluded nodes exist in the short format only
    text = run_client("squeue", "--noheader", "--array", "--format", f"%i{_FIELD_END}%x{_RECORD_END}")
    rows = _rows(text, ("name", "excluded"))
    excluded = {row["name"]: frozenset(_parse_field(row, "excluded", hostlist.expand)) for row in rows}
    return [replace(job, excluded=excluded.get(job.name, frozenset())) for job in jobs]


def read_nodes(partition: str) -> list[SlurmNode]:
    """Read the nodes of a partition."""
    ends = [_FIELD_END] * (len(NODE_FIELDS) - 1) + [_RECORD_END]
    fields = ",".join(f"{name}:0{end}" for name, end in zip(NODE_FIELDS, ends, strict=True))
    text = run_client("sinfo", "--noheader", "--Node", "--partition", partition, "--Format", fields)
    nodes = []
    for row in _rows(text, NODE_FIELDS):
        features = tuple(word for word in row["Features"].split(",") if word and word != "(null)")
        name, state = _parse_name(row["NodeList"], "NodeList"), row["StateLong"]
        nodes.append(SlurmNode(name, state in USABLE_STATES, _parse_int(row, "CPUs"), _parse_int(row, "Memory"), features))
    return nodes


def read_licenses() -> dict[str, int]:
    """Read the number of each license that jobs can use: the total minus reserved ones."""
    licenses = {}
    for line in run_client("scontrol", "--oneliner", "show", "licenses").splitlines():
        fields = pairs(line)
        if "LicenseName" in fields:
            licenses[_parse_name(fields["LicenseName"], "LicenseName")] = _parse_int(fields, "Total") - (
                _parse_int(fields, "Reserved") if fields.get("Reserved") else 0
            )
    return licenses


def read_racks(nodes: Mapping[str, SlurmNode]) -> dict[str, str]:
    """Read the rack of each node: its leaf switch, otherwise its feature that starts with "rack", otherwise "rack0"."""
    switches: dict[str, str] = {}
    for line in run_client("scontrol", "--oneliner", "show", "topology").splitlines():
        fields = pairs(line)
        if fields.get("Level") == "0" and "SwitchName" in fields:
            switches.update(dict.fromkeys(hostlist.expand(fields.get("Nodes", "")), fields["SwitchName"]))
    racks = {}
    for name, node in nodes.items():
        feature = next((word for word in node.features if word.startswith("rack")), "rack0")
        racks[name] = switches.get(name, feature)
    return racks


def default_partition() -> str:
    """Return the cluster's default partition; raises InputError if there is none."""
    for name in run_client("sinfo", "--noheader", "--format", "%P").split():
        if name.endswith("*"):
            return name.removesuffix("*")
    raise InputError("the cluster has no default partition", field="--partition", remedy="name one with --partition")


def is_exclusive(partition: str) -> bool:
    """Return whether jobs of a partition take whole nodes; raises InputError for an unknown partition."""
    for line in run_client("scontrol", "--oneliner", "show", "partition").splitlines():
        fields = pairs(line)
        if fields.get("PartitionName") == partition:
            return fields.get("OverSubscribe", "").upper() == "EXCLUSIVE"
    raise InputError(f"the cluster has no partition '{partition}'", field="--partition", remedy="see `sinfo`")


def _rows(text: str, names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for number, record in enumerate(text.split(_RECORD_END)[:-1], start=1):
        cells = record.removeprefix("\n").split(_FIELD_END)
        if len(cells) != len(names):
            raise InputError(f"expected {len(names)} fields, got {len(cells)}", file="Slurm", line=number, remedy=_REMEDY)
        yield dict(zip(names, cells, strict=True))


def _parse_job(row: Mapping[str, str], widest: int) -> SlurmJob:
    """Parse a row of squeue."""
    name = row["JobArrayID"]
    if not _ID.fullmatch(name):
        raise _parse_error("JobArrayID", name)
    comment, _, note = (row["Comment"] if row["Comment"] != "(null)" else "").partition(NOTE_SEPARATOR.strip())
    start, cpus = row["StartTime"], _parse_int(row, "NumCPUs")
    return SlurmJob(
        name,
        _parse_int(row, "JobID"),
        row["State"],
        row["Partition"],
        _parse_int(row, "UserID"),
        max(_parse_field(row, "tres", _parse_nodes), -(-cpus // widest)),
        cpus,
        _parse_field(row, "tres", _parse_memory),
        _parse_field(row, "TimeLimit", _parse_limit),
        _parse_int(row, "SubmitTime") * SECOND,
        int(start) * SECOND if start.isdigit() else None,
        tuple(_parse_field(row, "NodeList", hostlist.expand)),
        frozenset(_parse_field(row, "ReqNodes", hostlist.expand)),
        frozenset(),
        _parse_field(row, "Licenses", parse_licenses),
        _parse_int(row, "PriorityLong"),
        row["Reason"],
        row["Dependency"] not in ("", "(null)"),
        _parse_int(row, "RestartCnt"),
        comment.strip(),
        note.strip(),
    )


def parse_licenses(text: str) -> dict[str, int]:
    """Parse the licenses of a job, `name:count` or `name`, separated by commas; raises ValueError."""
    licenses: dict[str, int] = {}
    for part in text.split(",") if text not in ("", "(null)") else ():
        name, _, count = part.strip().rpartition(":") if ":" in part else (part.strip(), "", "1")
        if not _WORD.fullmatch(name) or not count.isdigit():
            raise ValueError(f"'{part}' is not NAME:COUNT")
        licenses[name] = licenses.get(name, 0) + int(count)
    return licenses


def _parse_nodes(text: str) -> int:
    """Return the number of nodes in trackable resources such as "cpu=2,mem=600M,node=1"; raises ValueError without one."""
    if "node" not in (amounts := pairs(text.replace(",", " "))):
        raise ValueError("'node' is missing")
    return int(amounts["node"])


def _parse_memory(text: str) -> int:
    """Return the memory (MiB) in trackable resources such as "cpu=2,mem=600M,node=1", 0 without any."""
    value = pairs(text.replace(",", " ")).get("mem", "0")
    return parse(f"{value}iB" if value[-1:] in tuple("KMGTP") else f"{value}MiB", "memory")


def _parse_limit(text: str) -> int:
    if text in ("NOT_SET", "INVALID", "Partition_Limit", ""):
        return UNKNOWN
    seconds = durations.seconds(text)
    return UNKNOWN if seconds == durations.FOREVER or seconds >= 360 * 86400 else seconds * SECOND


def _parse_name(text: str, field: str) -> str:
    if not _WORD.fullmatch(text):
        raise _parse_error(field, text)
    return text


def _parse_int(row: Mapping[str, str], field: str) -> int:
    text = row.get(field, "")
    if not text.isdigit():
        raise _parse_error(field, text)
    return int(text)


def _parse_field(row: Mapping[str, str], field: str, read: Callable[[str], T]) -> T:
    try:
        return read("" if row[field] == "(null)" else row[field])
    except ValueError as error:
        raise _parse_error(field, row[field]) from error


def _parse_error(field: str, text: str) -> InputError:
    return InputError(f"cannot parse '{text}'", file="Slurm", field=field, remedy=_REMEDY)


_REMEDY = "report this with your version of Slurm (`sinfo --version`); 22.05 is tested"
