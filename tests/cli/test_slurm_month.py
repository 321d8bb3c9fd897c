"""A planner's session on a generated month of a Slurm site: import, study, what-if question, plan, forecast, explanation.

The last test limits the time of the whole session.

Five numbers of the answers are computed again from the text of the export, by code that does not use Poolwise: counts by
reason, mean wait under FCFS, node-hours, cost, and utilization.
"""

import json
import re
import subprocess
import sys
import time
from datetime import datetime
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import slurm_month
from tests.helpers.machine_speed import measured_slowness

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("month")]

PLAN = """
[scheduler]
order = "fcfs"
backfill = "easy"
placement = "first_fit"

[performance]
model = "ideal"

[measure]
warm_up = 300

[plan]
kind = "pools"

[[plan.size]]
key = "machine.rack.0.nodes.fat"
values = [8, 12]
price = "21000 $"

[[plan.target]]
metric = "mean_bounded_slowdown_local"
at_most = 1.1
of = "reference"

[plan.reference]
"machine.rack.0.nodes.fat" = 12

[plan.certainty]
over = "jobs"
"""
WHAT_IF = """
[vary]
"scheduler.backfill.settings.bf_interval" = [300, 60]
"scheduler.order.settings.PriorityWeightJobSize" = [2000, 0]
"machine.rack.0.nodes.fat" = [8, 12]
"""
TODAY = """
[today]
name = "abbey today"
machine = "machine.toml"
scheduler = "slurm.toml"
"""
WHAT_IF_S, SESSION_S = 60.0, 600.0
"""Limits (s) of a what-if question and of the session on the reference computer; measured: 11 and 40 s."""
FCFS = (
    "--set", 'vary.scheduler.order=["fcfs"]', "--set", "scheduler.backfill=none", "--set", "measure.warm_up=0",
    "--set", "measure.baseline=false", "--set", 'measure.metrics=["resources"]',
)  # fmt: skip


NODES = {"batch": 40, "fat": 8, "gpu": 6}
EXCLUDED = {
    "requeued": "earlier row of a job that was requeued, or that was still active in an earlier export",
    "waiting": "waiting when exported",
    "running": "running when exported",
    "cancelled": "cancelled before it ran",
}
REPAIRED = {
    "unlimited": "time limit UNLIMITED, set to the runtime",
    "partition": "time limit Partition_Limit, set to the maximum time of the partition",
    "exceeded": "time limit below the runtime, set to the runtime",
    "component": "component of a heterogeneous job, treated as a separate job",
}


_TAKEN: list[float] = []
"""Seconds that each command of the session took, as on the reference computer."""


def poolwise(folder: Path, *words: str) -> str:
    """Run a command in a folder and return its standard output."""
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "poolwise", *words], cwd=folder, capture_output=True, text=True, check=False)
    _TAKEN.append((time.perf_counter() - begun) / max(1.0, measured_slowness()))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    slurm_month.write(folder)
    poolwise(folder, "import", "slurm", "--conf", "slurm.conf", "--log", "sacct.txt", "--out", "abbey")
    return folder


@pytest.fixture(scope="module")
def study(site: Path) -> dict[str, Any]:
    """The imported study under FCFS without backfilling, against today."""
    return dict(json.loads(poolwise(site, "run", "abbey/study.toml", "--out", "answer", *FCFS, "--json")))


# Recomputation without Poolwise


def last_rows(folder: Path) -> tuple[list[dict[str, str]], int]:
    """Return the last row of each job, and the number of earlier rows."""
    header, *lines = (folder / "sacct.txt").read_text().splitlines()
    rows = [dict(zip(header.split("|"), line.split("|"), strict=True)) for line in lines]
    jobs = [row for row in rows if "." not in row["JobIDRaw"]]
    last = {row["JobIDRaw"]: row for row in jobs}
    return [*last.values()], len(jobs) - len(last)


def finished(folder: Path) -> list[dict[str, str]]:
    return [row for row in last_rows(folder)[0] if row["State"] not in ("PENDING", "RUNNING") and int(row["ElapsedRaw"])]


def replay_fcfs(folder: Path) -> tuple[float, float]:
    """Return the mean wait (s) and the share of cores in use under FCFS, where a job blocks the later ones of its partition."""
    jobs = sorted(
        (int(datetime.fromisoformat(row["Submit"] + "+00:00").timestamp()), int(row["JobIDRaw"]), row["Partition"],
         int(row["NNodes"]), int(row["ElapsedRaw"]))
        for row in finished(folder)
    )  # fmt: skip
    free, clock, runs = dict(NODES), dict.fromkeys(NODES, 0), list[tuple[int, int, int]]()
    cores = {name: slurm_month.PARTITIONS[name][0] for name in NODES}
    running: dict[str, list[tuple[int, int]]] = {name: [] for name in NODES}
    waits = []
    for submit, _, partition, nodes, elapsed in jobs:
        now, ends = max(clock[partition], submit), running[partition]
        while (ends and ends[0][0] <= now) or free[partition] < nodes:
            end, count = heappop(ends)
            now, free[partition] = max(now, end), free[partition] + count
        clock[partition] = now
        free[partition] -= nodes
        heappush(ends, (now + elapsed, nodes))
        runs.append((now, now + elapsed, nodes * cores[partition]))
        waits.append(now - submit)
    first, last = jobs[0][0], max(start for start, *_ in runs)
    busy = sum(held * (min(end, last) - start) for start, end, held in runs)
    installed = sum(NODES[name] * cores[name] for name in NODES)
    return sum(waits) / len(waits), busy / (installed * (last - first))


def test_rows_are_counted_by_reason(site: Path) -> None:
    rows, earlier = last_rows(site)
    ran = finished(site)
    limits = [row["TimelimitRaw"] for row in ran]
    expected = {
        EXCLUDED["requeued"]: earlier,
        EXCLUDED["waiting"]: sum(row["State"] == "PENDING" for row in rows),
        EXCLUDED["running"]: sum(row["State"] == "RUNNING" for row in rows),
        EXCLUDED["cancelled"]: sum(row["State"].startswith("CANCELLED") and row["Start"] == "Unknown" for row in rows),
        REPAIRED["unlimited"]: limits.count("UNLIMITED"),
        REPAIRED["partition"]: limits.count("Partition_Limit"),
        REPAIRED["exceeded"]: sum(
            row["TimelimitRaw"].isdecimal() and int(row["ElapsedRaw"]) > 60 * int(row["TimelimitRaw"]) for row in ran
        ),
        REPAIRED["component"]: sum("+" in row["JobID"] for row in ran),
    }
    assert min(expected.values()) > 0 and {"NODE_FAIL", "TIMEOUT"} <= {row["State"] for row in ran}
    assert any("_" in row["JobID"] for row in ran)
    words = ("import", "slurm", "--conf", "slurm.conf", "--log", "sacct.txt", "--out", "again")
    printed = poolwise(site, *words)
    assert f"{len(ran):,} jobs of sacct.txt" in printed
    counted = re.findall(r"^  (?:excluded|repaired): ([\d,]+) (.+)$", printed, re.MULTILINE)
    assert {reason: int(count.replace(",", "")) for count, reason in counted} == expected


def test_node_hours_are_those_of_the_log(site: Path) -> None:
    hours = sum(int(row["NNodes"]) * int(row["ElapsedRaw"]) for row in finished(site)) / 3600
    printed = poolwise(site, "trace", "info", "sacct.txt", "--machine", "abbey/machine.toml")
    match = re.search(r"^node-seconds +(\S+)$", printed, re.MULTILINE)
    assert match is not None and float(match[1]) / 3600 == pytest.approx(hours, rel=1e-5)


def test_mean_wait_and_utilization_under_fcfs(site: Path, study: dict[str, Any]) -> None:
    wait, utilization = replay_fcfs(site)
    (cell,) = study["cells"]
    assert cell["measured_jobs"] == len(finished(site)) and wait > 0
    assert cell["mean_wait_s"] == pytest.approx(wait, rel=1e-12)
    assert cell["resource_used.cores"] == pytest.approx(utilization, rel=1e-12)


def test_study_compares_with_today(study: dict[str, Any]) -> None:
    differences = {difference["metric"]: difference for difference in study["today"]["differences"]}
    assert differences["mean_wait_s"]["value"] == study["cells"][0]["mean_wait_s"]
    assert differences["mean_wait_s"]["verdict"] == "worse", "today's Slurm backfills, FCFS does not"
    assert differences["mean_wait_s"]["ci95_low"] > 0


def test_what_if_question_is_answered_with_certainty_in_a_minute(site: Path) -> None:
    imported = (site / "abbey" / "study.toml").read_text()
    workload, measure = (imported[imported.index(f"[{name}]") :].partition("\n\n")[0] for name in ("workload", "measure"))
    head = 'version = 1\nmachine = "machine.toml"\nscheduler = "slurm.toml"\n\n'
    parts = [workload, '[performance]\nmodel = "ideal"', measure, WHAT_IF.strip(), TODAY.strip()]
    (site / "abbey" / "what-if.toml").write_text(head + "\n\n".join(parts) + "\n")
    printed = poolwise(site, "run", "abbey/what-if.toml", "--out", "what-if")
    assert _TAKEN[-1] < WHAT_IF_S
    assert printed.startswith("Run ") and "\nChanges compared with abbey today\n" in printed and "\nCertainty\n" in printed


def test_plan_with_prices_states_the_cost(site: Path) -> None:
    workload = (site / "abbey" / "study.toml").read_text().partition("[scheduler]")[0]
    (site / "abbey" / "plan.toml").write_text(workload + PLAN + TODAY)
    answer = json.loads(poolwise(site, "plan", "abbey/plan.toml", "--out", "plan", "--json"))
    costs = {}
    for line in (site / "plan" / "candidates.csv").read_text().splitlines()[1:]:
        nodes, cost = line.split(",")[:2]
        costs[int(nodes)] = float(cost)
    first, last = re.search(r"NodeName=fat\[(\d+)-(\d+)\]", slurm_month.CONF).groups()  # type: ignore[union-attr]
    owned = int(last) - int(first) + 1
    assert costs == {owned: owned * 21_000, 12: 12 * 21_000}
    assert answer["chosen"]["cost_dollars"] in costs.values() and answer["today"]["differences"]


def test_forecast_is_scored_on_the_log(site: Path) -> None:
    words = ("--machine", "abbey/machine.toml", "--scheduler", "abbey/slurm.toml", "--instants", "5", "--samples", "2")
    score = json.loads(poolwise(site, "forecast", "backtest", "sacct.txt", *words, "--json"))
    assert score["instants"] == 5 and score["jobs"] > 0 and 0 <= score["coverage_80"] <= 1


def test_explanation_accounts_for_the_whole_wait(site: Path, study: dict[str, Any]) -> None:
    job = finished(site)[2000]["JobIDRaw"]
    answer = json.loads(poolwise(site, "explain", "run", "answer", job, "--json"))
    assert answer["answer"].startswith(f"Job {job} waited ") and answer["wait_ns"] > 0
    assert sum(total["ns"] for total in answer["totals"]) == answer["wait_ns"]


@pytest.mark.usefixtures("study")
def test_session_takes_less_than_ten_minutes() -> None:
    assert 0 < sum(_TAKEN) < SESSION_S
