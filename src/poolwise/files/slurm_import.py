"""Import of a Slurm cluster: machine, scheduler and study files from slurm.conf, a log, and dumps of Slurm.

Each value in a file has a comment that names its source. A second slurm.conf, with the keys that a simulation reads, is written
for the order `multifactor` and the backfill `slurm`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.model import Workload
from poolwise.policies.backfill.slurm import IGNORED, SUPPORTED
from poolwise.policies.order.multifactor.rules import FLAGS, HARMLESS, KEYS, TRES
from poolwise.slurm import durations, hostlist
from poolwise.slurm.cluster import NodeSize, leaf_switches, node_sizes
from poolwise.slurm.conf import ConfSection, SlurmConf
from poolwise.slurm.dumps import QosLimits, read_priorities, read_qos_limits, read_shares
from poolwise.slurm.keys import AFFECTS, READ, known

MACHINE, SCHEDULER, CONF, STUDY = "machine.toml", "slurm.toml", "slurm.conf", "study.toml"
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_ODD = "its name has other characters than letters, digits, _ and -"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class SlurmFiles:
    """Files of a cluster.

    Attributes
    ----------
    conf : slurm.conf
    nodes : output of `sinfo` or `scontrol show node`
    topology : topology.conf, whose leaf switches are the racks
    shares, qos : dumps of `sshare` and `sacctmgr show qos`
    """

    conf: Path
    nodes: Path | None = None
    topology: Path | None = None
    shares: Path | None = None
    qos: Path | None = None


@dataclass
class Omissions:
    """Settings that an import leaves out: those that would change a schedule, those that would not, and unknown keys."""

    affecting: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


class SlurmImport:
    """A cluster to import, with the columns of its log; raises InputError with file, line and field for invalid files.

    Attributes
    ----------
    omitted : what is left out
    whole : whether jobs take whole nodes, and the reason
    """

    def __init__(self, files: SlurmFiles, columns: Collection[str]) -> None:
        self.files, self.omitted, self.columns = files, Omissions(), columns
        self.conf = SlurmConf.read_file(files.conf)
        self.name = self.conf.text("ClusterName", "cluster")
        self.whole = whole_nodes(self.conf)
        self.sizes = node_sizes(self.conf, files.nodes)
        self.switches = {} if files.topology is None else leaf_switches(files.topology)
        if not self.sizes:
            remedy = "add NodeName lines, or give the output of `scontrol show node` with --sinfo"
            raise InputError("no nodes are defined", file=files.conf, field="NodeName", remedy=remedy)
        if not self.conf.partitions:
            raise InputError(
                "no partitions are defined", file=files.conf, field="PartitionName", remedy="add PartitionName lines"
            )
        self._list_keys()

    def _list_keys(self) -> None:
        sections = [("", self.conf), *(("nodename", one) for one in self.conf.nodes)]
        sections += [("partitionname", one) for one in self.conf.partitions.values()]
        for kind, section in sections:
            ordinary = known(kind)
            for key, value in section.values.items():
                name, place = ordinary.get(key, key), f"{value.file.name}:{value.line}"
                if name in READ[kind]:
                    continue
                if name in AFFECTS[kind] and value.text.upper() not in ("NO", "OFF", "NONE", "PREEMPT/NONE", "0", "1"):
                    _add(self.omitted.affecting, f"{place}: {name}={value.text}: {AFFECTS[kind][name]}")
                else:
                    _add(self.omitted.others if key in ordinary else self.omitted.unknown, f"{name} ({place})")

    # Machine

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """Partition -> its nodes, for the partitions that have nodes."""
        found = {}
        for name, section in self.conf.partitions.items():
            hosts = [host for host in self._hosts(name) if host in self.sizes]
            if not hosts or not _LABEL.fullmatch(name):
                reason = _ODD if hosts else "it has no nodes"
                _add(self.omitted.affecting, f"{section.source('PartitionName')}: partition {name} is left out: {reason}")
                continue
            found[name] = hosts
        return found

    def _hosts(self, partition: str) -> list[str]:
        section = self.conf.partitions[partition]
        if self.files.nodes is not None and section.text("Nodes").upper() == "ALL":
            return list(self.sizes)
        return self.conf.hosts(partition)

    @cached_property
    def types(self) -> dict[str, list[str]]:
        """Node type -> its nodes: those of one size that are in the same partitions."""
        of: dict[str, list[str]] = {host: [] for host in self.sizes}
        for partition, hosts in self.members.items():
            for host in hosts:
                of[host].append(partition)
        groups: dict[Any, list[str]] = {}
        for host, size in self.sizes.items():
            if of[host]:
                groups.setdefault((size.cpus, size.memory, size.gpus, size.features, *of[host]), []).append(host)
            else:
                _add(self.omitted.affecting, f"{size.source}: node {host} is left out: no partition has it")
        named: dict[str, list[str]] = {}
        for hosts in groups.values():
            stem = re.sub(r"[0-9]*$", "", hosts[0]) or "node"
            stem = re.sub(r"[^A-Za-z0-9_-]", "-", stem).strip("-")
            stem = stem if _NAME.fullmatch(stem) else f"node-{stem}".strip("-")
            taken = {*named, *(name for name, _ in self.switches.values())}
            name = next(name for name in (stem, *(f"{stem}-{k}" for k in range(2, len(groups) + 2))) if name not in taken)
            named[name] = hosts
        return named

    def machine(self, qualities: Iterable[str] = ()) -> str:
        """Return machine.toml; QOS in `qualities`, those of the log, that the dump lacks get no limits."""
        memory = self.whole[0] or "MEMORY" in self.conf.text("SelectTypeParameters").upper()
        lines = [
            f"# Machine of cluster {self.name}, imported from {self.conf.file.name}.",
            "version = 1",
            f"name = {_toml(self.name)}",
            "",
            f"# {'Jobs take whole nodes' if self.whole[0] else 'Jobs share nodes'}: {self.whole[1]}.",
        ]
        if not memory:
            place = self.conf.source("SelectTypeParameters") or "not set"
            lines.append(f"# Memory is left out: SelectTypeParameters ({place}) has no memory, so Slurm does not allocate it.")
        for name, hosts in self.types.items():
            lines += self._node(name, hosts, memory)
        lines += [*self._racks(), *self._partitions()]
        if self.files.qos is not None:
            lines += self._qos(self.files.qos, qualities)
        return "\n".join(lines) + "\n"

    def _node(self, name: str, hosts: list[str], memory: bool) -> list[str]:
        size: NodeSize = self.sizes[hosts[0]]
        features = [word for word in size.features if _LABEL.fullmatch(word) and self._may_be_set(word)]
        for word in sorted({*size.features} - {*features}):
            problem = f"feature {word} is left out: a partition with other nodes has its name, or {_ODD}"
            _add(self.omitted.affecting, f"{size.source}: {problem}")
        return [
            "",
            "[[node]]",
            f"name = {_toml(name)}  # {hostlist.compress(hosts)}: {size.source}",
            *([] if self.whole[0] else ['allocation = "shared"']),
            f"cores = {size.cpus}",
            *([f'memory = "{size.memory} MiB"'] if memory else []),
            *([f"resources = {{ gpu = {size.gpus} }}  # Gres"] if size.gpus else []),
            *([f"features = {_toml(features)}"] if features else []),
        ]

    def _may_be_set(self, feature: str) -> bool:
        """Return whether no partition has the name of a feature, unless it has the same nodes."""
        having = {host for hosts in self.types.values() for host in hosts if feature in self.sizes[host].features}
        return feature not in self.members or {*self.members[feature]} == having

    def _racks(self) -> list[str]:
        count: dict[str, dict[str, int]] = {}
        for name, hosts in self.types.items():
            for host in hosts:
                rack = self.switches.get(host, ("", 0))[0]
                count.setdefault(rack, {}).setdefault(name, 0)
                count[rack][name] += 1
        topology, lines = self.files.topology, ["", "# One rack: no topology.conf was given."]
        if topology is not None:
            lines = ["", f"# Racks are the leaf switches of {topology.name}."]
        first = {name: line for name, line in self.switches.values()}
        for rack, nodes in count.items():
            source = f"  # {topology.name}:{first[rack]}" if topology is not None and rack else ""
            named = [f"name = {_toml(rack)}{source}"] if _NAME.fullmatch(rack) else []
            entries = ", ".join(f"{name} = {number}" for name, number in nodes.items())
            lines += ["[[rack]]", *named, f"nodes = {{ {entries} }}", ""]
        return lines[:-1]

    def _partitions(self) -> list[str]:
        lines, default = [], self.conf.default_partition
        for name, hosts in self.members.items():
            section = self.conf.partitions[name]
            types = [kind for kind, members in self.types.items() if members[0] in {*hosts}]
            longest = section.seconds("MaxTime", durations.FOREVER)
            most = section.read("MaxNodes", 0, lambda text: 0 if text.upper() == "UNLIMITED" else int(text), "write an integer")
            tier = section.whole("PriorityTier", 1)
            if (state := section.text("State", "UP").upper()) != "UP":
                _add(
                    self.omitted.affecting,
                    f"{section.source('State')}: partition {name} is {state}; its jobs run nevertheless",
                )
            if (share := _oversubscribe(section)) in ("YES", "FORCE"):
                place = section.source("OverSubscribe", "Shared")
                _add(self.omitted.affecting, f"{place}: OverSubscribe={share} in partition {name}: jobs do not share cores")
            lines += [
                "",
                "[[partition]]",
                f"name = {_toml(name)}  # {section.source('PartitionName')}",
                f"nodes = {_toml(types)}",
                *(["default = true"] if name == default else []),
                *(
                    []
                    if longest == durations.FOREVER
                    else [f'max_time = "{_duration(longest)}"  # {section.source("MaxTime")}']
                ),
                *([f"max_nodes = {most}  # {section.source('MaxNodes')}"] if most else []),
                *([f"tier = {tier}  # {section.source('PriorityTier')}"] if tier != 1 else []),
            ]
        return lines

    def _qos(self, dump: Path, qualities: Iterable[str]) -> list[str]:
        limits, lines = read_qos_limits(dump), list[str]()
        amounts = {"node": "nodes", "jobs": "jobs", **({} if self.whole[0] else {"cpu": "cores", "mem": "memory"})}
        if not self.whole[0] and any(size.gpus for size in self.sizes.values()):
            amounts["gres/gpu"] = "gpu"
        missing = {*qualities} - {one.name for one in limits} - {""}
        limits += [QosLimits(name, 0, durations.FOREVER, {}, {}) for name in sorted(missing)]
        for one in limits:
            if not _LABEL.fullmatch(one.name):
                _add(
                    self.omitted.affecting,
                    f"{dump.name}:{one.line}: QOS {one.name} is left out: {_ODD}",
                )
                continue
            source = f"{dump.name}:{one.line}" if one.line else "in the log only: no limits"
            lines += ["", "[[qos]]", f"name = {_toml(one.name)}  # {source}"]
            lines += ["default = true"] if one.name == "normal" else []
            lines += [] if one.max_time == durations.FOREVER else [f'max_time = "{_duration(one.max_time)}"']
            for scope in ("per_user", "total"):
                given: Mapping[str, int] = getattr(one, scope)
                if scope == "per_user" and given and "User" not in self.columns:
                    _add(
                        self.omitted.affecting, f"{dump.name}:{one.line}: limits per user are not applied: the log has no User"
                    )
                    continue
                for name in sorted({*given} - {*amounts}):
                    problem = f"the limit {name}={given[name]} of QOS {one.name} is not applied"
                    _add(self.omitted.affecting, f"{dump.name}:{one.line}: {problem}")
                entries = ", ".join(f"{amounts[name]} = {value}" for name, value in given.items() if name in amounts)
                lines += [f"{scope} = {{ {entries} }}"] if entries else []
        return lines

    # Scheduler

    def scheduler(self) -> dict[str, str]:
        """Return slurm.toml, and the slurm.conf that it names with the keys that the order and the backfill read."""
        conf, order, backfill = self.conf, '"fcfs"', '"none"'
        kept = {key: conf.values[key.lower()].text for key in KEYS if key in conf and key != "TRESBillingWeights"}
        comments = {"order": conf.source("PriorityType") or "PriorityType is not set", "backfill": conf.source("SchedulerType")}
        kind = conf.text("PriorityType", "priority/basic")
        if kind == "priority/multifactor":
            settings = {"conf": CONF, **self._weights(kept)}
            order = (
                "{ " + ", ".join(f"{key} = {_toml(value)}" for key, value in {"name": "multifactor", **settings}.items()) + " }"
            )
        elif kind != "priority/basic":
            _add(
                self.omitted.affecting,
                f"{conf.source('PriorityType')}: PriorityType={kind}: jobs start in order of submission",
            )
        if conf.text("SchedulerType", "sched/backfill") == "sched/backfill":
            backfill = f'{{ name = "slurm", conf = "{CONF}" }}'
            parameters = self._parameters()
            kept |= {"SchedulerParameters": parameters} if parameters else {}
        if not kept.get("PriorityFlags", "x"):
            del kept["PriorityFlags"]
        text = [f"# The keys of {conf.file.name} that {SCHEDULER} reads.", f"ClusterName={self.name}"]
        text += [f"# {conf.source(key)}\n{key}={value}" for key, value in kept.items()]
        for name, hosts in self.types.items():
            size = self.sizes[hosts[0]]
            text += [
                f"# {name}: {size.source}",
                f"NodeName={hostlist.compress(hosts)} CPUs={size.cpus} RealMemory={size.memory}",
            ]
        for name, hosts in self.members.items():
            section = conf.partitions[name]
            factor, default = section.whole("PriorityJobFactor", 1), " Default=YES" if name == conf.default_partition else ""
            text += [f"# {section.source('PartitionName')}"]
            text += [f"PartitionName={name} Nodes={hostlist.compress(hosts)} PriorityJobFactor={factor}{default}"]
        toml = [
            f"# Scheduler of cluster {self.name}, imported from {conf.file.name}.",
            "version = 1",
            f"title = {_toml(f'{self.name} today')}",
            f"order = {order}  # {comments['order']}",
            f"backfill = {backfill}  # {comments['backfill'] or 'SchedulerType is not set: sched/backfill'}",
            f'placement = "{self.placement}"',
        ]
        return {SCHEDULER: "\n".join(toml) + "\n", CONF: "\n".join(text) + "\n"}

    @property
    def placement(self) -> str:
        """Name of the placement."""
        return "racks" if self.whole[0] else "first_fit"

    def _weights(self, kept: dict[str, str]) -> dict[str, str]:
        """Return the dumps that the order needs; set the weights without their dump, and unsupported flags, aside."""
        conf, dumps = self.conf, dict[str, str]()
        for key, name, dump in (
            ("PriorityWeightFairshare", "shares", self.files.shares),
            ("PriorityWeightQOS", "qos", self.files.qos),
        ):
            lacks = "User" if name == "shares" else "QOS"
            if dump is not None and lacks in self.columns:
                dumps[name] = dump.name
            elif conf.whole(key, 0):
                kept[key] = "0"
                why = f"give its dump with --{name}" if dump is None else f"the log has no column {lacks}"
                _add(self.omitted.affecting, f"{conf.source(key)}: {key} is taken as 0: {why}")
        flags = conf.words("PriorityFlags")
        for flag in sorted({*flags} - {*FLAGS, *HARMLESS}):
            _add(self.omitted.affecting, f"{conf.source('PriorityFlags')}: PriorityFlags={flag} is left out")
        if flags:
            kept["PriorityFlags"] = ",".join(flag for flag in flags if flag in (*FLAGS, *HARMLESS))
        tres = conf.numbers("PriorityWeightTRES")
        for name in sorted({*tres} - {*TRES}):
            _add(self.omitted.affecting, f"{conf.source('PriorityWeightTRES')}: the weight of {name} is left out")
        if tres:
            kept["PriorityWeightTRES"] = ",".join(f"{name}={value:g}" for name, value in tres.items() if name in TRES)
        if conf.text("PriorityUsageResetPeriod", "NONE").upper() != "NONE":
            place = conf.source("PriorityUsageResetPeriod")
            _add(self.omitted.affecting, f"{place}: PriorityUsageResetPeriod is left out: usage is never reset")
            del kept["PriorityUsageResetPeriod"]
        return dumps

    def _parameters(self) -> str:
        given, place = self.conf.pairs("SchedulerParameters"), self.conf.source("SchedulerParameters")
        kept = []
        for name, value in given.items():
            if name in SUPPORTED:
                if not value.isdigit() or not int(value):
                    problem = f"{name}={value} is not a whole number above 0"
                    raise self.conf.refuse("SchedulerParameters", problem, "use a whole number of at least 1")
                kept.append(f"{name}={value}")
            elif name in IGNORED:
                _add(self.omitted.others, f"SchedulerParameters={name} ({place})")
            else:
                _add(self.omitted.affecting, f"{place}: SchedulerParameters={name} is left out")
        return ",".join(kept)

    # Study

    def study(self, log: str, workload: Workload, options: Mapping[str, Any], folder: Path) -> str:
        """Return study.toml for a log, a file or "catalog:NAME", whose jobs, read for the machine, are given."""
        trace = log if log.startswith(catalog.PREFIX) else Path(os.path.relpath(log, folder)).as_posix()
        partitions = workload.attributes.get("partition", np.array([], dtype=np.str_))
        unknown = sorted({*partitions.tolist()} - {*self.members, ""})
        lines = [
            f"# Study of cluster {self.name}: today's scheduler, and other orders on the same jobs and nodes.",
            "version = 1",
            f"title = {_toml(f'What would another queue order change on {self.name}?')}",
            f'machine = "{MACHINE}"',
            "",
            "[workload]",
            f"trace = {_toml(trace)}",
            'format = "sacct"',
        ]
        if options:
            entries = ", ".join(f"{name} = {_toml(value)}" for name, value in options.items())
            lines.append(f"options = {{ {entries} }}  # Slurm starts jobs by the memory that they request")
        if unknown:
            named = [name for name in ("", *self.members) if name in partitions]
            if not named:
                remedy = f"export jobs of {', '.join(self.members)}, or give the slurm.conf of the cluster of the log"
                problem = f"its jobs are in other partitions than those of slurm.conf: {', '.join(unknown)}"
                raise InputError(problem, file=log, field="Partition", remedy=remedy)
            lines.append(f"only = {{ partition = {_toml(named)} }}  # not in slurm.conf: {', '.join(unknown)}")
            count = f"{int(np.isin(partitions, unknown).sum()):,} of {len(workload):,} jobs"
            problem = f"left out, because slurm.conf lacks their partitions ({', '.join(unknown)})"
            _add(self.omitted.affecting, f"{Path(log).name}: {count}: {problem}")
        if "OverTimeLimit" in self.conf:
            grace, place = self.conf.text("OverTimeLimit"), self.conf.source("OverTimeLimit")
            lines.append(
                f"# Jobs may exceed their limit by {grace} min (OverTimeLimit, {place}): a run time above the limit is kept."
            )
        jobs = len(workload) - int(np.isin(partitions, unknown).sum())
        lines += [
            "",
            "[scheduler]",
            'backfill = "easy"',
            f'placement = "{self.placement}"',
            "",
            "[performance]",
            'model = "ideal"  # the machine has no memory pools that slow jobs down',
            "",
            "[measure]",
            f"warm_up = {min(jobs // 10, 500)}  # a tenth of the {jobs:,} jobs, at most 500",
            "",
            "[vary]",
            '"scheduler.order" = ["fcfs", "sjf", "wfp3"]',
            "",
            "[today]",
            f"name = {_toml(f'{self.name} today')}",
            f'scheduler = "{SCHEDULER}"',
        ]
        return "\n".join(lines) + "\n"

    def dumps(self) -> dict[str, str]:
        """Return the dumps that slurm.toml names, after a check that they can be read."""
        found = {}
        for dump, check in ((self.files.shares, read_shares), (self.files.qos, read_priorities)):
            if dump is not None:
                check(dump)
                found[dump.name] = dump.read_text(encoding="utf-8", errors="replace")
        return found


def whole_nodes(conf: SlurmConf) -> tuple[bool, str]:
    """Return whether jobs take whole nodes, and why: SelectType=select/linear, or every partition is exclusive."""
    select = conf.text("SelectType")
    if select == "select/linear":
        return True, f"SelectType={select} ({conf.source('SelectType')})"
    if conf.partitions and all(_oversubscribe(section) == "EXCLUSIVE" for section in conf.partitions.values()):
        return True, "OverSubscribe=EXCLUSIVE in every partition"
    if select:
        return False, f"SelectType={select} ({conf.source('SelectType')})"
    return False, "SelectType is not set, which means select/cons_tres"


def _oversubscribe(section: ConfSection) -> str:
    return (section.text("OverSubscribe") or section.text("Shared")).upper().partition(":")[0]


def _add(sentences: list[str], text: str) -> None:
    if text not in sentences:
        sentences.append(text)


def _toml(value: Any) -> str:
    """Return a value as TOML, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def _duration(seconds: int) -> str:
    size, unit = next((size, unit) for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")) if seconds % size == 0)
    return f"{seconds // size} {unit}"
