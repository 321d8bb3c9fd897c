"""machine.toml of an imported Slurm cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from poolwise.files.slurm_import.associations import association_lines, duration_text, limit_line
from poolwise.files.slurm_import.cluster import INVALID_NAME, LABEL, NAME, TREE_PLUGIN, SlurmCluster, oversubscribe, toml
from poolwise.slurm import durations, hostlist
from poolwise.slurm.cluster import NodeSize
from poolwise.slurm.dumps import QOS_OTHERS, QosLimits, read_qos_limits


def machine_text(cluster: SlurmCluster, qualities: Iterable[str] = (), windows: Iterable[str] = ()) -> str:
    """Return machine.toml, including the lines of windows; QOS of the log (`qualities`) that the dump lacks get no limits."""
    memory = cluster.whole[0] or "MEMORY" in cluster.conf.text("SelectTypeParameters").upper()
    lines = [
        f"# Machine of cluster {cluster.name}, imported from {cluster.conf.file.name}.",
        "version = 1",
        f"name = {toml(cluster.name)}",
        "",
        f"# {'No jobs share a node' if cluster.whole[0] else 'Jobs share nodes'}: {cluster.whole[1]}.",
    ]
    if not memory:
        place = cluster.conf.source("SelectTypeParameters") or "not set"
        lines.append(
            f"# Memory is left out: SelectTypeParameters ({place}) does not include memory, so Slurm does not allocate it."
        )
    for name, hosts in cluster.types.items():
        lines += _node(cluster, name, hosts, memory)
    lines += [*_racks(cluster), *_partitions(cluster)]
    if cluster.files.qos is not None:
        lines += _qos(cluster, cluster.files.qos, qualities)
    if cluster.files.associations is not None:
        lines += association_lines(cluster, cluster.files.associations)
    if cluster.licenses:
        lines += ["", f"[licenses]  # {cluster.conf.source('Licenses')}"]
        lines += [f"{toml(name) if set('.@') & {*name} else name} = {count}" for name, count in cluster.licenses.items()]
    return "\n".join([*lines, *windows]) + "\n"


def _node(cluster: SlurmCluster, name: str, hosts: list[str], memory: bool) -> list[str]:
    size: NodeSize = cluster.sizes[hosts[0]]
    features = [word for word in size.features if LABEL.fullmatch(word) and _may_be_set(cluster, word)]
    for word in sorted({*size.features} - {*features}):
        problem = f"feature {word} is left out: a partition with different nodes has the same name, or {INVALID_NAME}"
        cluster.leave_out(f"{size.source}: {problem}")
    return [
        "",
        "[[node]]",
        f"name = {toml(name)}  # {hostlist.compress(hosts)}: {size.source}",
        'allocation = "shared"',
        f"cores = {size.cpus}",
        *([f'memory = "{size.memory} MiB"'] if memory else []),
        *([f"resources = {{ gpu = {size.gpus} }}  # Gres"] if size.gpus else []),
        *([f"features = {toml(features)}"] if features else []),
        *([f"attributes = {{ weight = {size.weight} }}"] if cluster.weighted else []),
    ]


def _may_be_set(cluster: SlurmCluster, feature: str) -> bool:
    """Return whether a feature may be a set: no partition has its name, or one with the same nodes does."""
    having = {host for hosts in cluster.types.values() for host in hosts if feature in cluster.sizes[host].features}
    return feature not in cluster.members or {*cluster.members[feature]} == having


def racks_of(cluster: SlurmCluster) -> dict[str, dict[str, list[str]]]:
    """Return switch -> node type -> its nodes below the switch, in the order of machine.toml.

    With topology/tree, the switches are in the order of topology.conf, in which Slurm chooses among equal ones.
    """
    racks: dict[str, dict[str, list[str]]] = {}
    for name, hosts in cluster.types.items():
        for host in hosts:
            rack = cluster.switches.get(host, ("", 0))[0]
            racks.setdefault(rack, {}).setdefault(name, []).append(host)
    if cluster.conf.text("TopologyPlugin").lower() == TREE_PLUGIN:
        line_of = dict(cluster.switches.values())
        racks = dict(sorted(racks.items(), key=lambda rack: line_of.get(rack[0], sys.maxsize)))
    return racks


def _racks(cluster: SlurmCluster) -> list[str]:
    topology, lines = cluster.files.topology, ["", "# One rack: no topology.conf was given."]
    if topology is not None:
        lines = ["", f"# Racks are the leaf switches of {topology.name}."]
    first = {name: line for name, line in cluster.switches.values()}
    for rack, nodes in racks_of(cluster).items():
        source = f"  # {topology.name}:{first[rack]}" if topology is not None and rack else ""
        named = [f"name = {toml(rack)}{source}"] if NAME.fullmatch(rack) else []
        entries = ", ".join(f"{name} = {len(hosts)}" for name, hosts in nodes.items())
        lines += ["[[rack]]", *named, f"nodes = {{ {entries} }}", ""]
    return lines[:-1]


def _partitions(cluster: SlurmCluster) -> list[str]:
    lines, default = [], cluster.conf.default_partition
    for name, hosts in cluster.members.items():
        section = cluster.conf.partitions[name]
        types = [kind for kind, members in cluster.types.items() if members[0] in {*hosts}]
        longest = section.seconds("MaxTime", durations.FOREVER)
        most = section.read("MaxNodes", 0, lambda text: 0 if text.upper() == "UNLIMITED" else int(text), "write an integer")
        tier = section.partition_priority("PriorityTier")
        if (state := section.text("State", "UP").upper()) != "UP":
            cluster.leave_out(f"{section.source('State')}: partition {name} is {state}; its jobs run nevertheless")
        if (share := oversubscribe(section)) in ("YES", "FORCE"):
            place = section.source("OverSubscribe", "Shared")
            cluster.leave_out(f"{place}: OverSubscribe={share} in partition {name}: jobs do not share cores")
        alone = section.source("OverSubscribe", "Shared") if share == "EXCLUSIVE" else cluster.linear
        lines += [
            "",
            "[[partition]]",
            f"name = {toml(name)}  # {section.source('PartitionName')}",
            f"nodes = {toml(types)}",
            *(["default = true"] if name == default else []),
            *(
                []
                if longest == durations.FOREVER
                else [f'max_time = "{duration_text(longest)}"  # {section.source("MaxTime")}']
            ),
            *([f"max_nodes = {most}  # {section.source('MaxNodes')}"] if most else []),
            *([f"tier = {tier}  # {section.source('Priority', 'PriorityTier')}"] if tier != 1 else []),
            *([f"exclusive = true  # {alone}"] if alone else []),
        ]
    return lines


def _qos(cluster: SlurmCluster, dump: Path, qualities: Iterable[str]) -> list[str]:
    limits, lines = read_qos_limits(dump), list[str]()
    missing = {*qualities} - {qos.name for qos in limits} - {""}
    limits += [QosLimits(name, 0, durations.FOREVER, {}, {}) for name in sorted(missing)]
    for column, instead in QOS_OTHERS.items():
        if having := [qos for qos in limits if column in qos.others]:
            named = ", ".join(f"{qos.name} ({qos.others[column]})" for qos in having[:3]) + (", ..." if len(having) > 3 else "")
            cluster.leave_out(f"{dump.name}:{having[0].line}: {column} of QOS {named} is left out: {instead}")
    for qos in limits:
        if not LABEL.fullmatch(qos.name):
            cluster.leave_out(f"{dump.name}:{qos.line}: QOS {qos.name} is left out: {INVALID_NAME}")
            continue
        source = f"{dump.name}:{qos.line}" if qos.line else "in the log only: no limits"
        lines += ["", "[[qos]]", f"name = {toml(qos.name)}  # {source}"]
        lines += ["default = true"] if qos.name == "normal" else []
        lines += [] if qos.max_time == durations.FOREVER else [f'max_time = "{duration_text(qos.max_time)}"']
        for scope in ("per_user", "total"):
            lines += limit_line(cluster, f"{dump.name}:{qos.line}", f"QOS {qos.name}", scope, getattr(qos, scope))
    return lines
