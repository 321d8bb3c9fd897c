"""slurm.toml of an imported Slurm cluster, and the reduced slurm.conf and the dumps that it names."""

from __future__ import annotations

from typing import Final

from poolwise.files.slurm_import.cluster import CONF, SCHEDULER, SlurmCluster, add, toml
from poolwise.files.slurm_import.node_choice import placement_of
from poolwise.files.slurm_import.preemption import PARAMETERS, preemption_line
from poolwise.model.licenses import LICENSE
from poolwise.policies.backfill.slurm import (
    BUSY_NODES,
    DEPTH,
    FULL_PASS,
    IGNORED,
    LEAST_PRIORITY,
    PER_GROUP,
    RESERVED_JOBS,
    SUPPORTED,
)
from poolwise.policies.order.multifactor.rules import FLAGS, HARMLESS, KEYS, TRES
from poolwise.slurm import hostlist
from poolwise.slurm.associations import read_associations, shares_text
from poolwise.slurm.dumps import read_priorities, read_shares

SHARES: Final = "shares.txt"
"""File of the shares of associations, if no dump of sshare is given."""
DEFAULT_DEPTH: Final = 100
"""Slurm's default of `default_queue_depth`."""
THROTTLE: Final = "sched_min_interval"
"""Parameter that sets the minimum time between two passes of the main scheduler (microseconds)."""
_SECOND_US: Final = 1_000_000
DELAYS: Final = {
    "defer": "jobs are also tested when they are submitted, not only at intervals",
    "sched_max_job_start": "a pass may start any number of jobs",
}
"""Parameter of Slurm's main scheduler that changes schedules -> behavior of the replay instead."""


def scheduler_texts(cluster: SlurmCluster) -> dict[str, str]:
    """Return slurm.toml, and the slurm.conf that it names, reduced to the keys that the order and the backfill read."""
    conf, order, backfill = cluster.conf, '"fcfs"', '"none"'
    values = {key: conf.values[key.lower()].text for key in KEYS if key in conf and key != "TRESBillingWeights"}
    comments = {"order": conf.source("PriorityType") or "PriorityType is not set", "backfill": conf.source("SchedulerType")}
    kind = conf.text("PriorityType", "priority/basic")
    if kind == "priority/multifactor":
        settings = {"conf": CONF, **_weights(cluster, values)}
        order = "{ " + ", ".join(f"{key} = {toml(value)}" for key, value in {"name": "multifactor", **settings}.items()) + " }"
    elif kind != "priority/basic":
        cluster.leave_out(f"{conf.source('PriorityType')}: PriorityType={kind}: jobs start in order of submission")
    if conf.text("SchedulerType", "sched/backfill") == "sched/backfill":
        throttle, reason = _throttle(cluster)
        backfill = f'{{ name = "slurm", conf = "{CONF}"{throttle} }}'
        comments["backfill"] = (comments["backfill"] or "SchedulerType is not set: sched/backfill") + reason
        values |= {"SchedulerParameters": _parameters(cluster)}
        values |= {"SelectType": conf.text("SelectType")} if cluster.linear else {}
    if not values.get("PriorityFlags", "x"):
        del values["PriorityFlags"]
    text = [f"# The keys of {conf.file.name} that {SCHEDULER} reads.", f"ClusterName={cluster.name}"]
    text += [f"# {conf.source(key) or 'not set'}\n{key}={value}" for key, value in values.items()]
    weighs_gpus = "gres/gpu" in values.get("PriorityWeightTRES", "").lower()
    for name, hosts in cluster.types.items():
        size = cluster.sizes[hosts[0]]
        text += [
            f"# {name}: {size.source}",
            f"NodeName={hostlist.compress(hosts)} CPUs={size.cpus} RealMemory={size.memory}"
            + f" Gres=gpu:{size.gpus}" * bool(weighs_gpus and size.gpus),
        ]
    for name, hosts in cluster.members.items():
        section = conf.partitions[name]
        factor, default = section.partition_priority("PriorityJobFactor"), " Default=YES" * (name == conf.default_partition)
        text += [f"# {section.source('PartitionName')}"]
        text += [f"PartitionName={name} Nodes={hostlist.compress(hosts)} PriorityJobFactor={factor}{default}"]
    placement, source = placement_of(cluster)
    scheduler = [
        f"# Scheduler of cluster {cluster.name}, imported from {conf.file.name}.",
        "version = 1",
        f"title = {toml(f'{cluster.name} today')}",
        f"order = {order}  # {comments['order']}",
        f"backfill = {backfill}  # {comments['backfill']}",
        f"placement = {placement}{'  # ' * bool(source)}{source}",
    ]
    if preemption := preemption_line(cluster):
        scheduler.append(preemption)
    return {SCHEDULER: "\n".join(scheduler) + "\n", CONF: "\n".join(text) + "\n"}


def _weights(cluster: SlurmCluster, settings: dict[str, str]) -> dict[str, str]:
    """Return the dumps that the order needs; leave out weights whose dump is missing, and unsupported flags."""
    conf, dumps = cluster.conf, dict[str, str]()
    shares = cluster.files.shares.name if cluster.files.shares is not None else SHARES if cluster.files.associations else None
    for key, name, dump in (
        ("PriorityWeightFairshare", "shares", shares),
        ("PriorityWeightQOS", "qos", None if cluster.files.qos is None else cluster.files.qos.name),
    ):
        lacks = "User" if name == "shares" else "QOS"
        if dump is not None and lacks in cluster.columns:
            dumps[name] = dump
            if dump == SHARES and conf.whole(key, 0):
                cluster.leave_out(f"{conf.source(key)}: usage before the log is assumed to be 0: give it with --shares")
        elif conf.whole(key, 0):
            settings[key] = "0"
            why = f"give its dump with --{name}" if dump is None else f"the log has no column {lacks}"
            cluster.leave_out(f"{conf.source(key)}: {key} is set to 0: {why}")
    flags = conf.words("PriorityFlags")
    for flag in sorted({*flags} - {*FLAGS, *HARMLESS}):
        cluster.leave_out(f"{conf.source('PriorityFlags')}: PriorityFlags={flag} is left out")
    if flags:
        settings["PriorityFlags"] = ",".join(flag for flag in flags if flag in (*FLAGS, *HARMLESS))
    tres = conf.numbers("PriorityWeightTRES")
    licenses = {LICENSE + name.lower() for name in cluster.licenses}
    modeled = {name: weight for name, weight in tres.items() if name in (*TRES, *licenses)}
    for name in sorted({*tres} - {*modeled}):
        cluster.leave_out(f"{conf.source('PriorityWeightTRES')}: the weight of {name} is left out")
    if tres:
        settings["PriorityWeightTRES"] = ",".join(f"{name}={_number(weight)}" for name, weight in modeled.items())
    if conf.text("PriorityUsageResetPeriod", "NONE").upper() != "NONE":
        place = conf.source("PriorityUsageResetPeriod")
        cluster.leave_out(f"{place}: PriorityUsageResetPeriod is left out: usage is never reset")
        del settings["PriorityUsageResetPeriod"]
    return dumps


def _number(value: float) -> str:
    """Format a weight with all its digits, and without a decimal point if it is whole."""
    return f"{value:.0f}" if value.is_integer() else str(value)


def _parameters(cluster: SlurmCluster) -> str:
    options, place = cluster.conf.pairs("SchedulerParameters"), cluster.conf.source("SchedulerParameters")
    applied = [] if DEPTH in options else [f"{DEPTH}={DEFAULT_DEPTH}"]
    for name, value in options.items():
        if name in PARAMETERS or (name == THROTTLE and _throttle(cluster)[0]):
            continue
        if name == FULL_PASS and value == "-1":
            applied.append(f"{name}={value}")
        elif name == LEAST_PRIORITY and (why := _why_no_least_priority(cluster)):
            cluster.leave_out(f"{place}: SchedulerParameters={name} is left out: {why}")
        elif name == BUSY_NODES and cluster.linear:
            add(cluster.omitted.others.setdefault(f"SchedulerParameters={name}", []), place)
        elif name == BUSY_NODES:
            applied.append(name)
        elif name in SUPPORTED or name in PER_GROUP or name in (DEPTH, FULL_PASS, LEAST_PRIORITY, RESERVED_JOBS):
            least = int(name in SUPPORTED or name == FULL_PASS)
            if not value.isdigit() or int(value) < least:
                problem = f"{name}={value} is not a whole number{' above 0' if least else ''}"
                raise cluster.conf.refuse("SchedulerParameters", problem, f"use a whole number of at least {least}")
            lacking = [column for column in map(str.capitalize, PER_GROUP.get(name, ())) if column not in cluster.columns]
            if lacking and int(value):
                cluster.leave_out(f"{place}: SchedulerParameters={name} is left out: the log has no {' and '.join(lacking)}")
                continue
            applied.append(f"{name}={value}")
        elif name in DELAYS:
            cluster.leave_out(f"{place}: SchedulerParameters={name}: {DELAYS[name]}")
        elif name in IGNORED:
            add(cluster.omitted.others.setdefault(f"SchedulerParameters={name}", []), place)
        else:
            cluster.leave_out(f"{place}: SchedulerParameters={name} is left out")
    return ",".join(applied)


def _throttle(cluster: SlurmCluster) -> tuple[str, str]:
    """Return the setting `every` of the backfill for `sched_min_interval`, and its source; both empty below a second.

    slurmctld counts events once a second, so a shorter interval does not change when it examines its queue.
    """
    conf = cluster.conf
    value = conf.pairs("SchedulerParameters").get(THROTTLE, "0")
    if not value.isdigit():
        problem = f"{THROTTLE}={value} is not a whole number"
        raise conf.refuse("SchedulerParameters", problem, "use a whole number of microseconds")
    if int(value) < _SECOND_US:
        return "", ""
    return f", every = {int(value) / _SECOND_US:g}", f"; {THROTTLE}={value} ({conf.source('SchedulerParameters')})"


def _why_no_least_priority(cluster: SlurmCluster) -> str:
    """Return why priorities in the replay cannot be compared with Slurm's; empty if they can."""
    conf = cluster.conf
    if conf.text("PriorityType", "priority/basic") != "priority/multifactor":
        return "it requires PriorityType=priority/multifactor"
    if len({conf.partitions[name].partition_priority("PriorityTier") for name in cluster.members}) > 1:
        return "partitions have different tiers"
    return "jobs are preempted" if preemption_line(cluster) else ""


def dump_texts(cluster: SlurmCluster) -> dict[str, str]:
    """Check that the dumps that slurm.toml names can be read, and return them."""
    texts = {}
    for dump, check in ((cluster.files.shares, read_shares), (cluster.files.qos, read_priorities)):
        if dump is not None:
            check(dump)
            texts[dump.name] = dump.read_text(encoding="utf-8", errors="replace")
    if (path := cluster.files.associations) is not None:
        associations = read_associations(path)
        if cluster.files.shares is None:
            texts[SHARES] = shares_text(associations, path)
    return texts
