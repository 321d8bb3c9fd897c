"""Short days for a real Slurm that differ in one setting: the settings of a cluster, and its jobs."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.helpers.slurm_choices import INTERVAL

LICENSE = "matlab"
USERS = ("daemon", "bin", "games")
SIZES = {1: 6, 2: 3, 3: 2, 5: 1}
UP_TO_SIX = {1: 6, 2: 4, 3: 3, 4: 2, 5: 1, 6: 1}
"""As `SIZES`, for days on three leaf switches of at most three nodes."""
ASSOCIATIONS = (("alpha", "daemon"), ("beta", "daemon"), ("alpha", "bin"), ("gamma", "bin"))


class Job(NamedTuple):
    """A job: its time of submission (s), partition, user, nodes, CPUs per node, run time (s), limit (min), and the rest.

    MiB and GPUs are per node; without MiB, a job has 1 MiB per CPU.
    """

    at: float
    partition: str
    user: str
    nodes: int
    cpus: int
    runtime: int
    limit: int
    licenses: int = 0
    qos: str = ""
    account: str = ""
    memory: int = 0
    gpus: int = 0


class Reservation(NamedTuple):
    """A reservation that no job uses: its period (s), nodes and flags."""

    start: float
    end: float
    nodes: str
    flags: str = ""


@dataclass(frozen=True)
class Day:
    """Settings of a cluster, and its jobs.

    Attributes
    ----------
    jobs : the jobs, in order of submission
    lines, parameters, weights, licenses, nodes, racks, topology, cpus, memory, gpus : as for
        `Cluster`
    interval : bf_interval (s)
    without : texts of slurm.conf -> replacement without the tested setting
    accounting : whether slurmdbd runs, for jobs with a QOS and an account
    qualities : QOS -> its settings for sacctmgr
    reservations : the reservations
    associations : association -> its limits, both for sacctmgr
    """

    jobs: Sequence[Job]
    lines: str = ""
    parameters: str = ""
    weights: str = ""
    licenses: str = ""
    nodes: int = 8
    racks: int = 4
    topology: str = ""
    interval: int = INTERVAL
    cpus: str = ""
    memory: str = ""
    gpus: str = ""
    without: Mapping[str, str] = field(default_factory=dict)
    accounting: bool = False
    qualities: Mapping[str, str] = field(default_factory=dict)
    reservations: Sequence[Reservation] = ()
    associations: Mapping[str, str] = field(default_factory=dict)


def drawn(
    seed: int,
    count: int,
    seconds: float,
    *,
    whole: bool = False,
    partitions: Sequence[str] = ("main",),
    sizes: Mapping[int, int] = SIZES,
) -> list[Job]:
    """Draw the jobs of a day, submitted at random times, on parts of nodes or on whole ones.

    `sizes` maps numbers of nodes to their relative frequency.
    """
    draw = random.Random(seed)
    jobs = []
    for at in sorted(draw.uniform(0, seconds) for _ in range(count)):
        nodes = draw.choices(list(sizes), list(sizes.values()))[0]
        cpus = 16 if whole else draw.choice((2, 4, 8, 8, 16))
        jobs.append(Job(at, draw.choice(partitions), "", nodes, cpus, draw.choice((2, 3, 5, 8)), draw.choice((1, 1, 2))))
    return jobs


def mixed(seed: int, count: int, seconds: float) -> list[Job]:
    """Draw the jobs of a day on the nodes of `MIXED_NODES`; a fifth requests GPUs in the partition of these nodes."""
    draw = random.Random(seed)
    jobs = []
    for at in sorted(draw.uniform(0, seconds) for _ in range(count)):
        gpus = draw.choice((1, 2, 4)) if draw.random() < 0.2 else 0
        cpus = draw.choice((2, 4, 8) if gpus else (2, 4, 8, 16, 16, 32))
        nodes = draw.choice((1, 1, 2)) if gpus else min(draw.choices((1, 2, 3, 5), (6, 3, 2, 1))[0], 3 if cpus == 32 else 5)
        memory = draw.choice((1024, 4096, 16384) if gpus else (1024, 8192, 32768, 65536))
        times = draw.choice((2, 3, 5, 8)), draw.choice((1, 1, 2))
        jobs.append(Job(at, "gpu" if gpus else "main", "", nodes, cpus, *times, memory=memory, gpus=gpus))
    return jobs


def by_users(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs with random users, all of the caller without root."""
    draw = random.Random(3)
    return [job._replace(user=draw.choice(USERS)) if os.geteuid() == 0 else job for job in jobs]


def at_most(nodes: int, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs with at most a number of nodes each."""
    return [job._replace(nodes=min(job.nodes, nodes)) for job in jobs]


def licensed(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs with up to two licenses each."""
    draw = random.Random(7)
    return [job._replace(licenses=draw.choice((0, 0, 1, 2))) for job in jobs]


def urgent(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs of the account alpha with QOS: a third is high, the others normal."""
    draw = random.Random(8)
    return [job._replace(qos=draw.choice(("normal", "normal", "high")), account="alpha") for job in jobs]


def of_associations(jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs with random associations, those of the caller without root."""
    draw = random.Random(9)
    chosen = [draw.choice(ASSOCIATIONS) for _ in jobs]
    return [
        job._replace(account=account, user=user if os.geteuid() == 0 else "", qos="normal")
        for job, (account, user) in zip(jobs, chosen, strict=True)
    ]


def partitions(left: str, right: str, **others: str) -> str:
    """Return the lines of partitions: name -> nodes."""
    sets = {"left": left, "right": right, **others}
    return "".join(f"PartitionName={name} Nodes={nodes} State=UP\n" for name, nodes in sets.items())


def switches(order: Sequence[int], size: int = 3, nodes: int = 8) -> str:
    """Return the lines of a topology.conf of leaf switches of `size` nodes in an order; two more above four leaves."""
    leaves = [f"SwitchName=rack{k} Nodes=n[{k * size:03}-{min((k + 1) * size, nodes) - 1:03}]" for k in order]
    if len(order) < 4:
        return "\n".join([*leaves, "SwitchName=top Switches=rack[0-2]"])
    middle = ["SwitchName=left Switches=rack[0-1]", "SwitchName=right Switches=rack[2-3]"]
    return "\n".join([*leaves, *middle, "SwitchName=top Switches=left,right"])


URGENT = "PartitionName=urgent Nodes=ALL State=UP PriorityTier=10\n"
MIXED = drawn(2, 36, 20, whole=True, partitions=("main", "main", "urgent"))
SIDES = at_most(3, drawn(3, 36, 16, whole=True, partitions=("left", "right")))
DISJOINT, OVERLAPPING = partitions("n[000-003]", "n[004-007]"), partitions("n[000-005]", "n[002-007]")
THREE = partitions("n[000-003]", "n[002-005]", alone="n[006-007]")
BUILTIN = "SchedulerType=sched/builtin\n"
SPREAD = drawn(1, 36, 30)
PREEMPTING = URGENT + "PreemptType=preempt/partition_prio\nPreemptMode=MODE\n"
WIDE = [
    job._replace(nodes={1: 1, 2: 5, 3: 6, 5: 2}[job.nodes], limit=5 if job.nodes == 1 else 1)
    for job in drawn(11, 36, 16, whole=True)
]
WIDER = [
    job._replace(nodes={1: 1, 2: 2, 3: 5, 5: 6}[job.nodes], limit=2 if job.nodes == 1 else 1)
    for job in drawn(9, 36, 16, whole=True)
]
IN_PARTS = [
    job._replace(nodes={1: 1, 2: 2, 3: 5, 5: 6}[job.nodes], limit=2 if job.nodes == 1 else 1)
    for job in drawn(9, 36, 16, whole=True, partitions=("main", "other"))
]
BY_QOS = "PriorityType=priority/basic\nPreemptType=preempt/qos\nPreemptMode=MODE\n"
HIGH = {"high": "preempt=normal"}
BY_FACTOR = (
    "PriorityType=priority/multifactor\nPriorityWeightPartition=1000\n"
    "PartitionName=factor Nodes=ALL State=UP PriorityJobFactor=10\n"
)
FACTORED_SIDES = "PriorityType=priority/multifactor\nPriorityWeightPartition=1000\n" + OVERLAPPING.replace(
    "n[002-007]", "n[002-007] PriorityJobFactor=10"
)
FACTORED = drawn(2, 36, 16, whole=True, partitions=("main", "main", "factor"))
FILLING = [Job(0.0, "main", "", nodes, 16, 8, 2) for nodes in (5, 3)]
"""Jobs that use all nodes at the beginning, so that later jobs of another partition preempt."""
STOPPING = [*FILLING, *drawn(5, 34, 16, whole=True, partitions=("main", "main", "urgent"))]
MIXED_NODES = {"nodes": 16, "cpus": "16,16,32,16", "memory": "65536,131072,131072,65536", "gpus": "0,0,0,4"}
LINEAR = "SelectType=select/linear\nSelectTypeParameters=CR_Memory\n"
GPU_PARTITION = "PartitionName=gpu Nodes=n[012-015] State=UP\n"
WEIGHTED = "PriorityType=priority/multifactor\nAccountingStorageTRES=RESOURCE\nPriorityWeightTRES=CPU=1000,"
"""Slurm refuses the weight of a resource that slurmdbd does not track."""
WEIGHTED_GPUS = WEIGHTED.replace("RESOURCE", "gres/gpu") + "GRES/gpu=2000\n"
WEIGHTED_LICENSES = WEIGHTED.replace("RESOURCE", f"license/{LICENSE}") + f"license/{LICENSE}=1000\n"
TREE = "TopologyPlugin=topology/tree\n"
LEAVES = {"lines": TREE, "racks": 3, "without": {"topology/tree": "topology/none"}}
"""Leaf switches of three, three and two nodes."""
DAYS = {
    "equal weights": Day(SPREAD),
    "weights": Day(SPREAD, weights="30,10,20,10", without={r" Weight=\d+": ""}),
    "equal tiers": Day(MIXED, URGENT.replace("10", "1")),
    "tiers": Day(MIXED, URGENT, without={"PriorityTier=10": "PriorityTier=1"}),
    "disjoint partitions": Day(SIDES, DISJOINT),
    "overlapping partitions": Day(SIDES, OVERLAPPING),
    "jobs of users": Day(by_users(drawn(4, 36, 16, whole=True))),
    "bf_max_job_user": Day(by_users(drawn(4, 36, 16, whole=True)), "", "bf_max_job_user=1", without={",bf_max_job_user=1": ""}),
    "preemption by cancel": Day(
        STOPPING, PREEMPTING.replace("MODE", "CANCEL"), without={"PreemptMode=CANCEL": "PreemptMode=OFF"}
    ),
    "preemption by requeue": Day(
        STOPPING, PREEMPTING.replace("MODE", "REQUEUE"), without={"PreemptMode=REQUEUE": "PreemptMode=OFF"}
    ),
    "licenses": Day(licensed(drawn(6, 36, 20, whole=True)), licenses=f"{LICENSE}:3", without={r"(?m)^Licenses=.*": ""}),
    "heads of three partitions": Day(at_most(2, drawn(8, 36, 12, whole=True, partitions=("left", "right", "alone"))), THREE),
    "heads under sched/builtin": Day(
        at_most(2, drawn(8, 36, 12, whole=True, partitions=("left", "right", "alone"))), THREE + BUILTIN
    ),
    "heads of disjoint partitions under sched/builtin": Day(SIDES, DISJOINT + BUILTIN),
    **{
        f"preemption by QOS, {mode.lower()}": Day(
            urgent(drawn(11, 36, 16, whole=True)),
            BY_QOS.replace("MODE", mode),
            accounting=True,
            qualities=HIGH,
            without={f"PreemptMode={mode}": "PreemptMode=OFF"},
        )
        for mode in ("CANCEL", "REQUEUE")
    },
    "bf_max_job_assoc": Day(
        of_associations(WIDER),
        "PriorityType=priority/basic\n",
        "bf_max_job_assoc=1",
        accounting=True,
        without={",bf_max_job_assoc=1": ""},
    ),
    "bf_max_job_part": Day(
        IN_PARTS, "PartitionName=other Nodes=ALL State=UP\n", "bf_max_job_part=1", without={",bf_max_job_part=1": ""}
    ),
    "PriorityWeightTRES": Day(
        drawn(12, 36, 16, whole=True),
        "PriorityType=priority/multifactor\nPriorityWeightTRES=CPU=10000\n",
        without={"PriorityWeightTRES=CPU=10000": "PriorityWeightTRES=CPU=0"},
    ),
    **{
        f"PriorityWeightTRES of GPUs, {name}": Day(
            [job._replace(account="alpha", qos="normal") for job in mixed(seed, 120, 60)],
            GPU_PARTITION + WEIGHTED_GPUS,
            accounting=True,
            without={"GRES/gpu=2000": "GRES/gpu=0"},
            **MIXED_NODES,
        )
        for seed, name in ((4, "first day"), (5, "second day"))
    },
    "PriorityWeightTRES of licenses": Day(
        [job._replace(account="alpha", qos="normal") for job in licensed(drawn(15, 60, 24, whole=True))],
        WEIGHTED_LICENSES,
        accounting=True,
        licenses=f"{LICENSE}:6",
        without={f"license/{LICENSE}=1000": f"license/{LICENSE}=0"},
    ),
    "CR_CORE_DEFAULT_DIST_BLOCK": Day(drawn(13, 36, 30), "SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK\n"),
    "bf_min_prio_reserve": Day(
        FACTORED,
        BY_FACTOR,
        "bf_min_prio_reserve=500",
        without={",bf_min_prio_reserve=500": ""},
    ),
    "bf_min_prio_reserve with overlapping partitions": Day(
        at_most(3, drawn(14, 36, 12, whole=True, partitions=("left", "right"))),
        FACTORED_SIDES,
        "bf_min_prio_reserve=500",
        without={",bf_min_prio_reserve=500": ""},
    ),
    "bf_job_part_count_reserve": Day(WIDE, "", "bf_job_part_count_reserve=1", without={",bf_job_part_count_reserve=1": ""}),
    "bf_busy_nodes": Day(
        [job._replace(memory=1024) for job in drawn(2, 36, 30)], "", "bf_busy_nodes", without={",bf_busy_nodes": ""}
    ),
    **{
        f"mixed nodes, {name}": Day(mixed(seed, 120, 60), GPU_PARTITION, **MIXED_NODES)
        for seed, name in ((1, "first day"), (2, "second day"), (3, "third day"))
    },
    "reservations": Day(
        drawn(31, 60, 90), reservations=[Reservation(70, 85, "n[000-002]"), Reservation(90, 100, "n[004-005]")]
    ),
    "reservations in overlapping partitions": Day(
        at_most(3, drawn(32, 60, 60, whole=True, partitions=("left", "right"))),
        OVERLAPPING,
        reservations=[Reservation(50, 60, "n[000-003]"), Reservation(80, 90, "n[003-007]")],
    ),
    "maintenance of all nodes": Day(drawn(33, 50, 90), reservations=[Reservation(75, 90, "ALL", "MAINT")]),
    "limits of associations": Day(
        of_associations(at_most(3, drawn(41, 60, 40, whole=True))),
        "PriorityType=priority/basic\nAccountingStorageEnforce=limits\n",
        accounting=True,
        associations={
            "beta": "GrpTRES=cpu=48",
            "gamma": "GrpJobs=2",
            "alpha": "MaxJobs=3",
            "alpha/daemon": "MaxJobs=1",
            "gamma/bin": "MaxTRESPerJob=node=3",
        },
        without={"AccountingStorageEnforce=limits": "AccountingStorageEnforce=associations"},
    ),
    "default_queue_depth": Day(SIDES, DISJOINT, "default_queue_depth=2"),
    "whole nodes": Day(drawn(51, 36, 24), LINEAR),
    "whole nodes with weights": Day(drawn(52, 36, 24), LINEAR, weights="30,10,20,10", without={r" Weight=\d+": ""}),
    "whole nodes in overlapping partitions": Day(
        at_most(3, drawn(53, 36, 20, partitions=("left", "right"))), LINEAR + OVERLAPPING
    ),
    "whole nodes of three sizes": Day(mixed(54, 100, 60), LINEAR + GPU_PARTITION, **MIXED_NODES),
    "leaf switches": Day([job._replace(memory=1024) for job in drawn(61, 40, 24, sizes=UP_TO_SIX)], **LEAVES),
    "leaf switches with whole nodes": Day(drawn(62, 40, 24, whole=True, sizes=UP_TO_SIX), **LEAVES),
    "leaf switches with weights": Day(drawn(63, 40, 24, sizes=UP_TO_SIX), weights="30,10,20", **LEAVES),
    "leaf switches in another order": Day(
        drawn(65, 40, 24, whole=True, sizes=UP_TO_SIX), topology=switches((1, 0, 2)), **LEAVES
    ),
    "leaf switches below two others": Day(
        drawn(66, 40, 24, whole=True, sizes=UP_TO_SIX), TREE, racks=4, topology=switches((0, 1, 2, 3), 2)
    ),
    "sched_min_interval unset": Day(drawn(64, 60, 60, whole=True), interval=30),
    "sched_min_interval": Day(drawn(64, 60, 60, whole=True), "", "sched_min_interval=20000000", interval=30),
}
