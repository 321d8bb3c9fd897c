"""Sections of a machine file: racks, nodes, pools, devices, links, scheduling limits and failures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from poolwise.files.fields import Bandwidth, Count, Label, License, Memory, Name, Positive, Section, Time

Attributes = dict[Name, float]
Number = Annotated[int, Field(strict=True, ge=1, le=2**20)]
"""Number of items that are described individually, such as racks or devices."""


class Owner(Section):
    """Common fields of all owners: resources by name, and numbers that models and policies read."""

    name: Name
    cores: Count | None = Field(default=None, description="number of cores")
    memory: Memory | None = Field(default=None, description="memory capacity")
    storage: Memory | None = Field(default=None, description="storage capacity")
    bandwidth: Bandwidth | None = Field(default=None, description="bandwidth")
    resources: dict[Name, Count] = Field(default={}, description="amounts of other countable resources, such as gpus = 4")
    attributes: Attributes = Field(default={}, description="numbers that models and policies read, such as watts = 350")

    def amounts(self) -> dict[str, int]:
        """Return resource -> amount in base units, for the resources that are given."""
        named = {"cores": self.cores, "memory": self.memory, "storage": self.storage, "bandwidth": self.bandwidth}
        return {**{k: v for k, v in named.items() if v is not None}, **self.resources}


class NodeType(Owner):
    """A type of node. Jobs occupy `whole` nodes, or request cores and memory on `shared` ones."""

    allocation: Literal["whole", "shared"] = "whole"
    features: list[Label] = Field(default=[], description="features that jobs can request as a constraint")


class Racks(Section):
    """`count` identical racks, numbered consecutively over all [[rack]] entries: rack0, rack1, ..."""

    name: Name | None = Field(default=None, description="name of this entry in dotted paths")
    count: Number = 1
    nodes: dict[Name, Positive] = Field(description="number of nodes of each type in each rack")


class Pool(Owner):
    """A pool of memory, storage or another resource, for each rack or for the machine."""

    per: Literal["rack", "machine"] = "rack"


class Device(Owner):
    """Devices of a type: `count` in each node whose type matches, in each rack, or in the machine."""

    type: Name | None = Field(default=None, description="type of device; `name` if not given")
    count: Number = 1
    at: str = Field(default="rack", description='"rack", "machine", or a pattern of shared node types such as "gpu*"')


class Link(Section):
    """Links from every owner that matches a pattern to its rack's switch, the machine's switch, or an owner."""

    name: Name
    from_: str = Field(alias="from", description='pattern of owners ("rack*.thin*", matched part by part) or racks ("rack*")')
    to: str = Field(description='"rack" (switch of the owner\'s rack), "machine" (switch above all racks), or an owner')
    bandwidth: Bandwidth
    latency: Time = 0


NodePatterns = Annotated[
    list[str], Field(min_length=1, description='patterns of node types ("gpu*"), of racks ("rack0") or of owners ("rack*.n1*")')
]


class PartitionSection(Section):
    """A partition: a set of nodes, and limits on jobs that run there. Partitions may overlap."""

    name: Label
    nodes: NodePatterns
    default: bool = Field(default=False, description="whether jobs that name no partition run here")
    max_time: Time | None = Field(default=None, description="maximum time limit of a job")
    max_nodes: Positive | None = Field(default=None, description="maximum number of nodes of a job")
    tier: Count = Field(default=1, description="priority tier; jobs of a higher tier are considered first")
    exclusive: bool = Field(default=False, description="whether its jobs get exclusive use of shared nodes")

    @model_serializer(mode="wrap")
    def _serialized(self, default: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit `exclusive = false`, so that the hashes of machines without exclusive partitions stay the same."""
        content: dict[str, Any] = default(self)
        return content if self.exclusive else {name: value for name, value in content.items() if name != "exclusive"}


class QosSection(Section):
    """A quality of service (QOS): limits on what its jobs may hold at any time."""

    name: Label
    default: bool = Field(default=False, description="whether it applies to jobs that name no QOS")
    max_time: Time | None = Field(default=None, description="maximum time limit of a job")
    per_user: dict[Name, Count] = Field(default={}, description="maximum jobs, nodes, cores, ... per user")
    total: dict[Name, Count] = Field(default={}, description="maximum jobs, nodes, cores, ... of all jobs together")


class AssociationSection(Section):
    """Limits on the jobs of an account, or of a user in an account."""

    account: str = Field(min_length=1, description="name of the account in the jobs")
    user: str = Field(default="", description="user in the account to whom the limits apply; the whole account if not given")
    parent: str = Field(default="", description="parent account, whose limits also apply")
    max_time: Time | None = Field(default=None, description="maximum time limit of a job")
    per_job: dict[Name, Count] = Field(default={}, description="maximum nodes, cores, ... per job")
    per_user: dict[Name, Count] = Field(default={}, description="maximum jobs, nodes, cores, ... per user of an account")
    total: dict[Name, Count] = Field(
        default={}, description="maximum jobs, nodes, cores, ... of all jobs, including those in child accounts"
    )


class WindowSection(Section):
    """A window in which nodes are kept free, known in advance: maintenance or a reservation."""

    name: Label
    start: Time = Field(description="start of the window, relative to time 0 of the workload")
    end: Time
    nodes: NodePatterns = Field(default=["*"])
    users: list[str] = Field(default=[], description="users whose jobs may run in the window")
    accounts: list[str] = Field(default=[], description="accounts whose jobs may run in the window")

    @model_validator(mode="after")
    def _lasts(self) -> WindowSection:
        if self.end <= self.start:
            raise ValueError("end must be after start")
        return self


class OutageSection(Section):
    """A period in which nodes are down, unknown to schedulers in advance."""

    nodes: NodePatterns
    down: Time = Field(description="start of the outage, relative to time 0 of the workload")
    up: Time = Field(description="end of the outage, relative to time 0 of the workload")

    @model_validator(mode="after")
    def _lasts(self) -> OutageSection:
        if self.up <= self.down:
            raise ValueError("up must be after down")
        return self


class FailuresSection(Section):
    """Node failures: fixed outages, and random ones drawn from the run's seed."""

    outage: list[OutageSection] = Field(default=[])
    nodes: NodePatterns = Field(default=["*"])
    mtbf: Time | None = Field(
        default=None, gt=0, description="mean time from repair to the next failure of a node (exponentially distributed)"
    )
    mttr: Time = Field(default=0, description="mean time to repair (exponentially distributed)")
    until: Time | None = Field(default=None, description="time after which nothing fails; the last submission if not given")
    jobs: Literal["requeue", "lose"] = Field(default="requeue", description="action for jobs that lose a node")


class MachineFile(Section):
    """A machine: racks of nodes, pools, devices and links, with optional limits and failures."""

    version: Annotated[Literal[1], Field(description="version of the file format")]
    title: str = ""
    name: str | None = Field(default=None, description="name in reports; the file's name if not given")
    node: list[NodeType] = Field(min_length=1)
    rack: list[Racks] = Field(min_length=1)
    pool: list[Pool] = Field(default=[])
    device: list[Device] = Field(default=[])
    link: list[Link] = Field(default=[])
    partition: list[PartitionSection] = Field(default=[])
    qos: list[QosSection] = Field(default=[])
    association: list[AssociationSection] = Field(default=[])
    window: list[WindowSection] = Field(default=[])
    licenses: dict[License, Count] = Field(default={}, description="count of each license, such as matlab = 10")
    failures: FailuresSection | None = None

    @model_serializer(mode="wrap")
    def _serialized(self, default: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit empty `licenses` and `association`, so that the hashes of machines without them stay the same."""
        content: dict[str, Any] = default(self)
        return {name: value for name, value in content.items() if value or name not in ("licenses", "association")}

    def content(self) -> dict[str, Any]:
        """Return everything that a result depends on, in base units; omits the machine's name and title."""
        return self.model_dump(mode="json", by_alias=True, exclude={"title", "name"})


_TIMES = ("latency", "max_time", "start", "end", "down", "up", "mtbf", "mttr", "until")
_UNITS = {"memory": "MiB", "storage": "MiB", "bandwidth": "MB/s", **dict.fromkeys(_TIMES, "ns")}


def to_file_tables(content: dict[str, Any]) -> dict[str, Any]:
    """Convert `MachineFile.content` to tables as written in a file: quantities with units, and no empty values."""
    return {
        section: [_entry(entry) for entry in entries]
        if isinstance(entries, list)
        else entries
        if section == "licenses"  # names without units, also "memory"
        else _section_tables(entries)
        for section, entries in content.items()
        if entries not in ([], None)
    }


def _section_tables(section: Any) -> Any:
    """Convert a table that contains tables; any other value is returned unchanged."""
    if not isinstance(section, dict):
        return section
    return {
        key: [_entry(part) for part in value] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        for key, value in _entry(section).items()
    }


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    settings = {key: value for key, value in entry.items() if value not in (None, {}, [])}
    return {key: f"{value} {_UNITS[key]}" if key in _UNITS else value for key, value in settings.items()}
