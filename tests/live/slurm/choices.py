"""Replays of short days of a real Slurm that differ in one setting, by the imported configuration: `make test-live`.

Each day has a few dozen jobs of seconds on 8 nodes. `poolwise import slurm` reads the slurm.conf of the cluster, and [today]
replays the recorded submissions and run times, with passes at the times of the controller's. A node with a completing job is
unavailable for milliseconds. If a pass falls into that time, later jobs may differ, so the agreement is printed, and asserted
with a margin.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from poolwise.files.slurm_import.cluster import whole_nodes
from poolwise.slurm import hostlist
from poolwise.slurm.cluster import node_sizes
from poolwise.slurm.conf import SlurmConf
from tests.helpers.slurm_choices import HEADER, INTERVAL, Recording
from tests.live.slurm.cluster import Cluster, missing_programs, wait_until
from tests.live.slurm.day import read_log
from tests.live.slurm.witness import wait_for

pytestmark = pytest.mark.skipif(bool(missing_programs(False)), reason=missing_programs(False) or "Slurm is installed")
PARAMETERS = f"sched_interval=60,batch_sched_delay=0,bf_interval={INTERVAL},bf_window=60,bf_resolution=1"
LICENSE = "matlab"
USERS = ("daemon", "bin", "games")
ASSOCIATIONS = (("alpha", "daemon"), ("beta", "daemon"), ("alpha", "bin"), ("gamma", "bin"))
QOS_COLUMNS = "Name,Priority,Preempt,PreemptMode,PreemptExemptTime,GraceTime"
_STARTED = re.compile(
    r"\[(?P<at>[^]]+)] (?:sched: Allocate JobId=(?P<main>\d+) NodeList="
    r"|sched/backfill: _start_job: Started JobId=(?P<backfill>\d+) in \S+ on )(?P<nodes>\S+)"
)
_COMPLETED = re.compile(r"\[(?P<at>[^]]+)] .*job_epilog_complete: enter JobId=(?P<job>\d+)")
_PREEMPTED = re.compile(r"\[(?P<at>[^]]+)] preempted JobId=(?P<job>\d+) has been")
LINES = """LogTimeFormat=iso8601_ms
TopologyPlugin=topology/none
SlurmctldDebug=verbose
DebugFlags=Backfill,TraceJobs
SlurmSchedLogLevel=1
"""


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
    lines, parameters, weights, licenses, nodes, cpus, memory, gpus : as for `Cluster`
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
    cpus: str = ""
    memory: str = ""
    gpus: str = ""
    without: Mapping[str, str] = field(default_factory=dict)
    accounting: bool = False
    qualities: Mapping[str, str] = field(default_factory=dict)
    reservations: Sequence[Reservation] = ()
    associations: Mapping[str, str] = field(default_factory=dict)


def record(day: Day, folder: Path) -> Recording:
    """Run a day on a real Slurm."""
    parameters = ",".join(filter(None, (PARAMETERS, day.parameters)))
    sizes = {name: getattr(day, name) for name in ("nodes", "cpus", "memory", "gpus", "weights", "licenses")}
    with Cluster(LINES + day.lines, parameters, accounting=day.accounting, **sizes) as cluster:
        (folder / "slurm.conf").write_text(last_values(cluster.public_conf()))
        for name, settings in day.qualities.items():
            cluster.call("sacctmgr", "-i", "-Q", "modify", "qos", name, "set", *settings.split())
        for which, limits in day.associations.items():
            cluster.call("sacctmgr", "-i", "-Q", "modify", *limits_of(which, limits))
        if day.associations:
            (folder / "assoc.txt").write_text(cluster.call("sacctmgr", "-P", "show", "assoc", "tree"))
        if day.qualities:
            (folder / "qos.txt").write_text(cluster.call("sacctmgr", "-P", "show", "qos", f"format={QOS_COLUMNS}"))
        jobs, begun = dict[int, Job](), time.time() + 1
        if day.reservations:
            (folder / "reservations.txt").write_text(reserve(day.reservations, begun, cluster))
        for job in day.jobs:
            wait_until(begun + job.at)
            words = f"--ntasks-per-node=1 -N{job.nodes} -c{job.cpus} -t{job.limit} -p{job.partition}".split()
            words += ["-L", f"{LICENSE}:{job.licenses}"] if job.licenses else []
            words += [f"--mem={job.memory}"] if job.memory else []
            words += [f"--gres=gpu:{job.gpus}"] if job.gpus else []
            words += [f"--{name}={value}" for name, value in (("qos", job.qos), ("account", job.account)) if value]
            jobs[cluster.run(*words, *([f"--uid={job.user}"] if job.user else []), seconds=job.runtime)] = job
        wait_for("all jobs are done", lambda: not cluster.call("squeue", "-h"), 240 if "REQUEUE" in day.lines else 120)
        text = cluster.log.read_text()
        sched = cluster.log.with_name("sched.log").read_text().replace("sched: [", "[")
        logged, instants, _ = read_log(text + sched)
    ran, stopped = read_stops(text, logged, {job: 1000 * one.runtime for job, one in jobs.items()})
    logged |= ran
    when = {name: np.array([int(logged[job][name]) for job in jobs]) for name in ("submit", "start", "end")}
    when |= {name: np.array(instants[name]) for name in ("looks", "backfills")}
    completed = read_completions(text)
    when["completed"] = np.array([completed.get(job, -1) for job in jobs])
    when["stopped"] = np.array([stopped.get(job, -1) for job in jobs])
    counted, conf = bool(day.licenses or day.gpus), SlurmConf.read_file(folder / "slurm.conf")
    sizes_of = node_sizes(conf, None) if whole_nodes(conf)[0] else {}
    rows = [
        "|".join(
            [
                HEADER,
                *(["ReqCPUS"] if sizes_of else []),
                *(["AllocTRES"] if counted else []),
                *(["QOS", "Account"] if day.accounting else []),
            ]
        )
    ]
    for k, (number, job) in enumerate(jobs.items()):
        submit, start, end = (int(when[name][k]) for name in ("submit", "start", "end"))
        times = (datetime.fromtimestamp(ms // 1000, UTC).isoformat()[:19] for ms in (submit, start))
        memory = f"{job.memory}Mn" if job.memory else "1Mc"
        cpus = sum(sizes_of[host].cpus for host in hostlist.expand(str(logged[number]["ran_on"]))) if sizes_of else 0
        size = (job.nodes, cpus or job.nodes * job.cpus, max((end - start) // 1000, 1), job.limit, memory)
        size += (job.nodes * job.cpus,) if sizes_of else ()
        amounts = {f"license/{LICENSE}": job.licenses, "gres/gpu": job.nodes * job.gpus}
        size += (",".join(f"{name}={amount}" for name, amount in amounts.items() if amount),) if counted else ()
        size += (job.qos, job.account) if day.accounting else ()
        rows.append("|".join(map(str, (number, job.user or "root", job.partition, *times, "COMPLETED", *size))))
    (folder / "sacct.txt").write_text("\n".join(rows) + "\n")
    origin = when["submit"][0] // 60_000 * 60_000  # a shift that does not change how Slurm rounds
    when = {name: np.where(ms < 0, -1, ms - origin) for name, ms in when.items()}
    found = Recording(folder, when, [str(logged[job]["ran_on"]) for job in jobs])
    found.write()
    return found


def limits_of(association: str, limits: str) -> list[str]:
    """Return the words of `sacctmgr modify` that set limits of an association, "ACCOUNT" or "ACCOUNT/USER"."""
    account, _, user = association.partition("/")
    which = ["user", user, "where", f"account={account}"] if user else ["account", account]
    return [*which, "set", *limits.split()]


def reserve(reservations: Sequence[Reservation], begun: float, cluster: Cluster) -> str:
    """Create reservations, with times from the begin of the day (s since 1970), and return the list of them."""
    scontrol = ("env", "TZ=UTC", "scontrol")
    for name, reservation in zip("abcdefgh", reservations, strict=False):
        start, end = (datetime.fromtimestamp(round(begun + at), UTC) for at in (reservation.start, reservation.end))
        words = [f"StartTime={start:%FT%T}", f"EndTime={end:%FT%T}", f"Nodes={reservation.nodes}", "Users=mail"]
        words += [f"Flags={reservation.flags}"] if reservation.flags else []
        cluster.call(*scontrol, "create", "reservation", f"ReservationName={name}", *words)
    return cluster.call(*scontrol, "--oneliner", "show", "reservation")


def last_values(conf: str) -> str:
    """Return the lines of a slurm.conf without the keys that a later line sets again."""
    lines = conf.splitlines()
    keys = [line.partition("=")[0] for line in lines]
    repeated = ("NodeName", "PartitionName")
    kept = [line for k, line in enumerate(lines) if keys[k] in repeated or keys[k] not in keys[k + 1 :]]
    return "\n".join(kept) + "\n"


def read_stops(
    text: str, logged: Mapping[int, Mapping[str, int | str]], runtimes: Mapping[int, int]
) -> tuple[dict[int, dict[str, int | str]], dict[int, int]]:
    """Return the events of the preempted jobs as if their first run had not been stopped, and the times of the stops (ms).

    A requeued job has the run time of its last run. A canceled one has that of its script (`runtimes`, ms), or a longer one if
    it had not ended by then.
    """
    found, stops, starts = dict[int, dict[str, int | str]](), dict[int, int](), dict[int, list[tuple[int, str]]]()
    for line in text.splitlines():
        if match := _STARTED.match(line):
            job = int(match["main"] or match["backfill"])
            starts.setdefault(job, []).append((_ms(match["at"]), match["nodes"]))
        if match := _PREEMPTED.match(line):
            stops.setdefault(int(match["job"]), _ms(match["at"]))
    for job in stops:
        first, *others = starts[job]
        length = int(logged[job]["end"]) - others[-1][0] if others else max(runtimes[job], stops[job] - first[0] + 1)
        found[job] = {**logged[job], "start": first[0], "end": first[0] + length, "ran_on": first[1]}
    return found, stops


def read_completions(text: str) -> dict[int, int]:
    """Return the ms since 1970 at which the controller could use the last node of each job again."""
    return {int(match["job"]): _ms(match["at"]) for match in map(_COMPLETED.match, text.splitlines()) if match}


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def drawn(seed: int, count: int, seconds: float, *, whole: bool = False, partitions: Sequence[str] = ("main",)) -> list[Job]:
    """Draw the jobs of a day, submitted at random times, on parts of nodes or on whole ones."""
    draw = random.Random(seed)
    jobs = []
    for at in sorted(draw.uniform(0, seconds) for _ in range(count)):
        nodes = draw.choices((1, 2, 3, 5), (6, 3, 2, 1))[0]
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
}


@pytest.mark.parametrize("name", DAYS)
def test_replay_by_the_imported_configuration(name: str, tmp_path: Path) -> None:
    day = record(DAYS[name], tmp_path)
    found, exact = day.replay(tmp_path / "out"), day.replay(tmp_path / "exact", "topology_none")
    print(f"\n{name}: {len(day.ran_on)} jobs, mean wait {np.mean(day.ms['start'] - day.ms['submit']) / 1000:.1f} s")
    print(f"  imported: {found}\n  topology_none: {exact}")
    if DAYS[name].without:
        other = day.replay(tmp_path / "without", "topology_none", DAYS[name].without)
        print(f"  without the setting: {other}")
        assert exact.same_starts + exact.same_nodes > other.same_starts + other.same_nodes
    if DAYS[name].reservations:
        other = day.replay(tmp_path / "without", "topology_none", reserves=False)
        print(f"  without the reservations: {other}")
        assert exact.same_starts + exact.same_nodes > other.same_starts + other.same_nodes
    if BUILTIN in DAYS[name].lines:
        one = day.replay(tmp_path / "one", "topology_none", heads="machine")
        print(f"  with one head: {one}")
        assert exact.same_starts + exact.same_nodes > one.same_starts + one.same_nodes
    assert exact.same_starts >= 0.65 and abs(exact.wait_deviation) <= 0.2
    assert found.same_starts >= (0.3 if DAYS[name].reservations else 0.5)


def test_least_loaded_nodes(tmp_path: Path) -> None:
    day = record(Day(SPREAD, "SelectTypeParameters=CR_CPU_Memory,CR_LLN\n"), tmp_path)
    found = day.replay(tmp_path / "out")
    print(f"\nCR_LLN: imported: {found}")
    assert found.same_starts >= 0.65 and abs(found.wait_deviation) <= 0.2
