"""What a machine file may say: racks, nodes, pools, devices and links."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from poolwise.files.fields import Bandwidth, Count, Label, Memory, Name, Positive, Section, Time

Attributes = dict[Name, float]
Number = Annotated[int, Field(strict=True, ge=1, le=2**20)]
"""How many of what is described one by one: racks, devices."""


class Owner(Section):
    """What every owner may have: resources by name, and numbers that models and policies read."""

    name: Name
    cores: Count | None = Field(default=None, description="cores")
    memory: Memory | None = Field(default=None, description="memory")
    storage: Memory | None = Field(default=None, description="storage capacity")
    bandwidth: Bandwidth | None = Field(default=None, description="bandwidth")
    resources: dict[Name, Count] = Field(default={}, description="further resources that are counted, such as gpus = 4")
    attributes: Attributes = Field(default={}, description="numbers that models and policies read, such as watts = 350")

    def amounts(self) -> dict[str, int]:
        """Resource -> amount in base units, of those that are given."""
        named = {"cores": self.cores, "memory": self.memory, "storage": self.storage, "bandwidth": self.bandwidth}
        return {**{k: v for k, v in named.items() if v is not None}, **self.resources}


class NodeType(Owner):
    """A type of node. Jobs take `whole` nodes, or `shared` ones where each asks for cores and memory of its own."""

    allocation: Literal["whole", "shared"] = "whole"
    features: list[Label] = Field(default=[], description="names that jobs may ask for as a constraint")


class Racks(Section):
    """`count` equal racks, numbered consecutively over all [[rack]] entries: rack0, rack1, ..."""

    name: Name | None = Field(default=None, description="lets a dotted path reach this entry")
    count: Number = 1
    nodes: dict[Name, Positive] = Field(description="node type -> number in each rack")


class Pool(Owner):
    """A pool of memory, storage or another resource: one in each rack, or one for the machine."""

    per: Literal["rack", "machine"] = "rack"


class Device(Owner):
    """Devices of a type: `count` in each node whose type matches, in each rack, or in the machine."""

    type: Name | None = Field(default=None, description="type of device; its name if not given")
    count: Number = 1
    at: str = Field(default="rack", description='"rack", "machine", or a pattern of shared node types such as "gpu*"')


class Link(Section):
    """Links from every owner that a pattern matches to its rack's switch, the machine's switch, or an owner."""

    name: Name
    from_: str = Field(alias="from", description='pattern of owners ("rack*.thin*"), part by part, or of racks ("rack*")')
    to: str = Field(description='"rack" (the switch of the own rack), "machine" (the one switch above) or an owner')
    bandwidth: Bandwidth
    latency: Time = 0


NodePatterns = Annotated[
    list[str], Field(min_length=1, description='patterns of node types ("gpu*"), of racks ("rack0") or of owners ("rack*.n1*")')
]


class PartitionSection(Section):
    """A partition: some nodes, and what jobs on them may ask for. Partitions may overlap."""

    name: Label
    nodes: NodePatterns
    default: bool = Field(default=False, description="takes the jobs that name no partition")
    max_time: Time | None = Field(default=None, description="longest time that a job may request")
    max_nodes: Positive | None = Field(default=None, description="nodes that a job may ask for")
    tier: Count = Field(default=1, description="jobs of a higher tier are considered before all others")


class QosSection(Section):
    """A quality of service (QOS): what its jobs may have at a time."""

    name: Label
    default: bool = Field(default=False, description="that of the jobs that name none")
    max_time: Time | None = Field(default=None, description="longest time that a job may request")
    per_user: dict[Name, Count] = Field(default={}, description="most jobs, nodes, cores, ... of one user")
    total: dict[Name, Count] = Field(default={}, description="most jobs, nodes, cores, ... of all its jobs together")


class WindowSection(Section):
    """Nodes that are kept free for a time that is known beforehand: maintenance, or a reservation."""

    name: Label
    start: Time = Field(description="from when, counted from time 0 of the workload")
    end: Time
    nodes: NodePatterns = Field(default=["*"])
    users: list[str] = Field(default=[], description="whose jobs may use the nodes all the same")
    accounts: list[str] = Field(default=[], description="the same, by account")

    @model_validator(mode="after")
    def _lasts(self) -> WindowSection:
        if self.end <= self.start:
            raise ValueError("the window must end after it starts")
        return self


class OutageSection(Section):
    """Nodes that are down for a time, which no scheduler knows beforehand."""

    nodes: NodePatterns
    down: Time = Field(description="from when, counted from time 0 of the workload")
    up: Time = Field(description="until when")

    @model_validator(mode="after")
    def _lasts(self) -> OutageSection:
        if self.up <= self.down:
            raise ValueError("the nodes must come up after they go down")
        return self


class FailuresSection(Section):
    """What breaks: outages that are given, and others that are drawn from the run's seed."""

    outage: list[OutageSection] = Field(default=[])
    nodes: NodePatterns = Field(default=["*"])
    mtbf: Time | None = Field(default=None, gt=0, description="mean time from a node's repair to its next failure, exponential")
    mttr: Time = Field(default=0, description="mean time to its repair, exponential")
    until: Time | None = Field(default=None, description="nothing fails from then on; by default the last submission")
    jobs: Literal["requeue", "lose"] = Field(default="requeue", description="what becomes of jobs that lose a node")


class MachineFile(Section):
    """A machine."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""
    name: str | None = Field(default=None, description="what reports call it; the file's name if not given")
    node: list[NodeType] = Field(min_length=1)
    rack: list[Racks] = Field(min_length=1)
    pool: list[Pool] = Field(default=[])
    device: list[Device] = Field(default=[])
    link: list[Link] = Field(default=[])
    partition: list[PartitionSection] = Field(default=[])
    qos: list[QosSection] = Field(default=[])
    window: list[WindowSection] = Field(default=[])
    failures: FailuresSection | None = None

    def content(self) -> dict[str, Any]:
        """Everything that a result depends on, in base units; names and titles of the whole are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude={"title", "name"})


_TIMES = ("latency", "max_time", "start", "end", "down", "up", "mtbf", "mttr", "until")
_UNITS = {"memory": "MiB", "storage": "MiB", "bandwidth": "MB/s", **dict.fromkeys(_TIMES, "ns")}


def written(content: dict[str, Any]) -> dict[str, Any]:
    """Write the content of a machine file as such a file says it: quantities with their units, and only what is given."""
    return {
        section: [_entry(entry) for entry in entries] if isinstance(entries, list) else _written_section(entries)
        for section, entries in content.items()
        if entries not in ([], None)
    }


def _written_section(section: Any) -> Any:
    """A table with tables in it, or any other value as it is."""
    if not isinstance(section, dict):
        return section
    return {
        key: [_entry(part) for part in value] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        for key, value in _entry(section).items()
    }


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in entry.items() if value not in (None, {}, [])}
    return {key: f"{value} {_UNITS[key]}" if key in _UNITS else value for key, value in given.items()}
