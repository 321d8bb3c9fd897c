"""Replays of short days of a real Slurm that differ in one setting, by the imported configuration: `make test-live`.

Each day has a few dozen jobs of seconds on 8 nodes. `poolwise import slurm` reads the slurm.conf of the cluster, and [today]
replays the recorded submissions and run times, with passes at the times of the controller's. A node with a completing job is
unavailable for milliseconds. If a pass falls into that time, later jobs may differ, so the agreement is printed, and asserted
with a margin.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from poolwise.files.slurm_import.cluster import whole_nodes
from poolwise.slurm import hostlist
from poolwise.slurm.cluster import node_sizes
from poolwise.slurm.conf import SlurmConf
from tests.helpers.slurm_choices import HEADER, Recording
from tests.live.slurm.choice_days import BUILTIN, DAYS, LICENSE, SPREAD, TREE, Day, Job, Reservation
from tests.live.slurm.cluster import Cluster, missing_programs, wait_until
from tests.live.slurm.day import read_log
from tests.live.slurm.witness import wait_for

pytestmark = pytest.mark.skipif(bool(missing_programs(False)), reason=missing_programs(False) or "Slurm is installed")
PARAMETERS = "sched_interval=60,batch_sched_delay=0,bf_window=60,bf_resolution=1"
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


def record(day: Day, folder: Path) -> Recording:
    """Run a day on a real Slurm."""
    parameters = ",".join(filter(None, (f"bf_interval={day.interval}", PARAMETERS, day.parameters)))
    sizes = {
        name: getattr(day, name) for name in ("nodes", "racks", "topology", "cpus", "memory", "gpus", "weights", "licenses")
    }
    with Cluster(LINES + day.lines, parameters, accounting=day.accounting, **sizes) as cluster:
        (folder / "slurm.conf").write_text(last_values(cluster.public_conf()))
        if TREE in day.lines:
            shutil.copy(cluster.conf.with_name("topology.conf"), folder)
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


@pytest.mark.parametrize("name", DAYS)
def test_replay_by_the_imported_configuration(name: str, tmp_path: Path) -> None:
    day, placement = record(DAYS[name], tmp_path), "topology_tree" if TREE in DAYS[name].lines else "topology_none"
    found, exact = day.replay(tmp_path / "out"), day.replay(tmp_path / "exact", placement)
    print(f"\n{name}: {len(day.ran_on)} jobs, mean wait {np.mean(day.ms['start'] - day.ms['submit']) / 1000:.1f} s")
    print(f"  imported: {found}\n  {placement}: {exact}")
    if DAYS[name].without:
        other = day.replay(tmp_path / "without", "topology_none", DAYS[name].without)
        print(f"  without the setting: {other}")
        # on some days, the setting decides nothing, for example because the weights already lead to the same nodes
        both_exact = exact.same_starts == exact.same_nodes == other.same_starts == other.same_nodes == 1.0
        assert both_exact or exact.same_starts + exact.same_nodes > other.same_starts + other.same_nodes
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
