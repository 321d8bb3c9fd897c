"""A Slurm cluster as its files describe it: nodes by type, partitions, and the settings that an import leaves out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w

from poolwise.errors import InputError
from poolwise.files.slurm_import.gres import with_gres
from poolwise.policies.backfill.slurm import LINEAR
from poolwise.slurm import hostlist
from poolwise.slurm.cluster import gpus_of, leaf_switches, node_sizes
from poolwise.slurm.conf import ConfSection, SlurmConf
from poolwise.slurm.keys import AFFECTS, READ, known

MACHINE, SCHEDULER, CONF, STUDY = "machine.toml", "slurm.toml", "slurm.conf", "study.toml"
TREE_PLUGIN = "topology/tree"
LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LICENSE = re.compile(r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.@-]*)(?:[:*=](?P<count>[0-9]{1,9}))?")
INVALID_NAME = "its name contains characters other than letters, digits, _ and -"


@dataclass(frozen=True)
class SlurmFiles:
    """Files of a cluster.

    Attributes
    ----------
    conf : slurm.conf
    nodes : output of `sinfo` or `scontrol show node`
    topology : topology.conf, whose leaf switches are the racks
    shares, qos : dumps of `sshare` and `sacctmgr show qos`
    reservations : output of `scontrol show reservation`
    associations : output of `sacctmgr show assoc` or `sacctmgr dump`
    gres : gres.conf, with the types of GPUs
    """

    conf: Path
    nodes: Path | None = None
    topology: Path | None = None
    shares: Path | None = None
    qos: Path | None = None
    reservations: Path | None = None
    associations: Path | None = None
    gres: Path | None = None


@dataclass
class Omissions:
    """Settings that an import leaves out.

    Attributes
    ----------
    affecting : sentences on settings that would change a schedule, each beginning with its place
    others, unknown : key -> its places, for keys that would not change a schedule, and for unknown keys
    """

    affecting: list[str] = field(default_factory=list)
    others: dict[str, list[str]] = field(default_factory=dict)
    unknown: dict[str, list[str]] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        """Return the sentences on settings that would change a schedule; equal ones are merged, with all of their places."""
        places: dict[str, list[str]] = {}
        for text in self.affecting:
            place, _, rest = text.partition(": ")
            add(places.setdefault(rest, []), place)
        return [f"{_listed(sources)}: {rest}" for rest, sources in places.items()]


def keys_text(keys: Mapping[str, list[str]]) -> str:
    """Format keys with their places."""
    return ", ".join(f"{key} ({_listed(places)})" for key, places in keys.items())


def _listed(places: list[str]) -> str:
    """Format places such as "slurm.conf:3", at most three of them."""
    more = f" and {len(places) - 3:,} more" if len(places) > 3 else ""
    shown = [
        place if k == 0 or _file(place) != _file(places[k - 1]) else place.rpartition(":")[2] for k, place in enumerate(places)
    ]
    return ", ".join(shown[:3]) + more


def _file(place: str) -> str:
    return place.rpartition(":")[0]


_SELECTION = {
    "CR_PACK_NODES": "the tasks of a job are placed as in the log",
    "CR_ONE_TASK_PER_CORE": "jobs get the CPUs that they request",
    "CR_SOCKET": "jobs get cores, not whole sockets",
    "CR_SOCKET_MEMORY": "jobs get cores, not whole sockets",
}
"""Word of SelectTypeParameters that changes schedules on shared nodes -> behavior of the replay instead."""


class SlurmCluster:
    """A cluster to import, with the columns of its log; raises InputError with file, line and field for invalid files.

    Attributes
    ----------
    omitted : settings that are left out
    whole : whether no jobs share a node, and the reason
    linear : "SelectType=select/linear" with its place; "" for any other plugin
    """

    def __init__(self, files: SlurmFiles, columns: Collection[str]) -> None:
        self.files, self.omitted, self.columns = files, Omissions(), columns
        self.conf = SlurmConf.read_file(files.conf)
        self.name = self.conf.text("ClusterName", "cluster")
        self.linear = linear_source(self.conf)
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
        if files.gres is not None:
            types = {host: gpus_of(node.text("Gres"))[1] for host, node in self.conf.by_host.items()}
            self.sizes = with_gres(self.sizes, files.gres, types, self.leave_out)
        self._note_unread_keys()
        self._note_selection()

    def _note_unread_keys(self) -> None:
        sections = [("", self.conf), *(("nodename", conf_section) for conf_section in self.conf.nodes)]
        sections += [("partitionname", conf_section) for conf_section in self.conf.partitions.values()]
        for kind, section in sections:
            ordinary = known(kind)
            for key, value in section.values.items():
                name, place = ordinary.get(key, value.key), f"{value.file.name}:{value.line}"
                if name in READ[kind] or (name == "AccountingStorageEnforce" and self.files.associations and self.files.qos):
                    continue
                if name in AFFECTS[kind] and value.text.upper() not in ("NO", "OFF", "NONE", "PREEMPT/NONE", "0", "1"):
                    self.leave_out(f"{place}: {name}={value.text}: {AFFECTS[kind][name]}")
                else:
                    places = self.omitted.others if key in ordinary else self.omitted.unknown
                    add(places.setdefault(name, []), place)

    def _note_selection(self) -> None:
        place = self.conf.source("SelectTypeParameters")
        for word in () if self.whole[0] else self.conf.words("SelectTypeParameters"):
            if word in _SELECTION:
                self.leave_out(f"{place}: SelectTypeParameters={word}: {_SELECTION[word]}")

    @cached_property
    def licenses(self) -> dict[str, int]:
        """Name -> number of licenses in the cluster, from entries "name:count"; the count is 1 if it is omitted."""
        counts, place = dict[str, int](), self.conf.source("Licenses")
        for word in re.split("[,;]", self.conf.text("Licenses")):
            match = _LICENSE.fullmatch(word.strip())
            if match:
                counts[match["name"]] = int(match["count"] or 1)
            elif word.strip():
                self.leave_out(f"{place}: license {word.strip()} is left out: it is not of the form NAME:COUNT")
        return counts

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """Partition -> its nodes, for the imported partitions; raises InputError if there are none."""
        for name, reason in self.unusable.items():
            source = self.conf.partitions[name].source("PartitionName")
            self.leave_out(f"{source}: partition {name} is left out: {reason}")
        nodes = {name: hosts for name, hosts in self._hosts_in.items() if name not in self.unusable}
        if not nodes:
            reasons = ", ".join(f"{name} ({reason})" for name, reason in self.unusable.items())
            remedy = (
                "give the partitions nodes, and use only letters, digits, _ and - in their names, in slurm.conf and in the log"
            )
            raise InputError(
                f"no partition can be imported: {reasons}", file=self.files.conf, field="PartitionName", remedy=remedy
            )
        return nodes

    @cached_property
    def unusable(self) -> dict[str, str]:
        """Partition -> the reason why it is left out."""
        invalid = {name: INVALID_NAME for name in self._hosts_in if not LABEL.fullmatch(name)}
        return invalid | {name: "it has no nodes" for name, hosts in self._hosts_in.items() if not hosts}

    @cached_property
    def _hosts_in(self) -> dict[str, list[str]]:
        return {name: [host for host in self._hosts(name) if host in self.sizes] for name in self.conf.partitions}

    def _hosts(self, partition: str) -> list[str]:
        section = self.conf.partitions[partition]
        if self.files.nodes is not None and section.text("Nodes").upper() == "ALL":
            return list(self.sizes)
        return self.conf.hosts(partition)

    @cached_property
    def types(self) -> dict[str, list[str]]:
        """Node type -> its nodes, which have the same size and weight and are in the same partitions."""
        of: dict[str, list[str]] = {host: [] for host in self.sizes}
        for partition, hosts in self.members.items():
            for host in hosts:
                of[host].append(partition)
        groups: dict[Any, list[str]] = {}
        outside: dict[str, list[str]] = {}
        for host, size in self.sizes.items():
            if of[host]:
                groups.setdefault((size.cpus, size.memory, size.gpus, size.features, size.weight, *of[host]), []).append(host)
            else:
                outside.setdefault(size.source, []).append(host)
        for source, hosts in outside.items():
            nodes = f"node {hosts[0]} is" if len(hosts) == 1 else f"nodes {hostlist.compress(hosts)} are"
            self.leave_out(f"{source}: {nodes} left out: no imported partition contains {'it' if len(hosts) == 1 else 'them'}")
        named: dict[str, list[str]] = {}
        for hosts in groups.values():
            stem = re.sub(r"[0-9]*$", "", hosts[0]) or "node"
            stem = re.sub(r"[^A-Za-z0-9_-]", "-", stem).strip("-")
            stem = stem if NAME.fullmatch(stem) else f"node-{stem}".strip("-")
            taken = {*named, *(name for name, _ in self.switches.values())}
            name = next(name for name in (stem, *(f"{stem}-{k}" for k in range(2, len(groups) + 2))) if name not in taken)
            named[name] = hosts
        return named

    @property
    def weighted(self) -> bool:
        """True if the nodes have different weights."""
        return len({self.sizes[hosts[0]].weight for hosts in self.types.values()}) > 1

    def leave_out(self, text: str) -> None:
        """Record a setting that is omitted although it would change schedules."""
        add(self.omitted.affecting, text)


def linear_source(conf: SlurmConf) -> str:
    """Return "SelectType=select/linear" with its place; "" for any other plugin."""
    select = conf.text("SelectType")
    return f"SelectType={select} ({conf.source('SelectType')})" if select == LINEAR else ""


def whole_nodes(conf: SlurmConf) -> tuple[bool, str]:
    """Return whether no jobs share a node, and why: SelectType=select/linear, or every partition is exclusive."""
    select = conf.text("SelectType")
    if linear := linear_source(conf):
        return True, linear
    if conf.partitions and all(oversubscribe(section) == "EXCLUSIVE" for section in conf.partitions.values()):
        return True, "OverSubscribe=EXCLUSIVE in every partition"
    if select:
        return False, f"SelectType={select} ({conf.source('SelectType')})"
    return False, "SelectType is not set, which means select/cons_tres"


def oversubscribe(section: ConfSection) -> str:
    """Return OverSubscribe of a partition in upper case, without its number of jobs; "" if it is not set."""
    return (section.text("OverSubscribe") or section.text("Shared")).upper().partition(":")[0]


def add(sentences: list[str], text: str) -> None:
    """Append a sentence unless the list contains it."""
    if text not in sentences:
        sentences.append(text)


def toml(value: Any) -> str:
    """Return a value as TOML, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")
