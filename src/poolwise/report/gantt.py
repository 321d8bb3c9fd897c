"""Gantt chart of the nodes that jobs held around the wait of one job, with the reasons for its wait and the use of pools."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.explain import Explanation
from poolwise.explain.sentences import held_by, memory_sentence
from poolwise.metrics.slowdown import wait_s
from poolwise.model import Kind, Machine, Schedule
from poolwise.model.schedule import Holdings
from poolwise.presentation.answer import Answer
from poolwise.presentation.figure import Axis, Box, Boxes, Curves, Figure
from poolwise.presentation.format import format_number
from poolwise.quantities import HOUR, format_memory, format_time, shared_time_unit, to_seconds
from poolwise.report.run_parts import mean_over_parts
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.cell_simulation import simulate_again

PARTS = 120
"""Number of parts of the displayed period; the bands show their means."""
MAXPOOLS = 12
"""Maximum number of pools to draw, in machine order."""
POOLS = "pool in use"
_BAND, _GAP = 0.09, 0.025
"""Height of a band and of the gap between bands, relative to the height of all nodes."""


def pools_over_time(schedule: Schedule, window: tuple[int, int], submit: int, top: float) -> Iterator[Box]:
    """Yield the boxes of each pool's band above `top`; `window` is in ns, and hours count from `submit`."""
    edges = np.linspace(*window, PARTS + 1)
    for k, (owner, column) in enumerate(_drawn(schedule.machine)):
        low, installed = _low(k, top), int(schedule.machine.capacity[owner, column])
        name = _name(schedule.machine, owner, column)
        for begin, end, share in zip(edges, edges[1:], _in_use(schedule, owner, column, edges) / installed, strict=False):
            if share > 0:
                amount = resource_amount(schedule.machine.resources[column], installed)
                text = f"{name}: {format_number(100 * share)} % of {amount} in use {_relative_time(begin - submit)}"
                high = low + _BAND * top * min(1.0, float(share))
                yield Box(float(begin - submit) / HOUR, float(end - submit) / HOUR, low, high, POOLS, text)


def pool_ticks(machine: Machine, top: float) -> dict[float, str]:
    """Return the name of each pool at the middle of its band."""
    return {_low(k, top) + _BAND * top / 2: _name(machine, owner, column) for k, (owner, column) in enumerate(_drawn(machine))}


def _drawn(machine: Machine) -> list[tuple[int, int]]:
    """Return (owner, resource) of each pool resource to draw."""
    pools = np.flatnonzero(machine.kind == Kind.POOL).tolist()
    return [(owner, k) for owner in pools for k in range(len(machine.resources)) if machine.capacity[owner, k]][:MAXPOOLS]


def _in_use(schedule: Schedule, owner: int, column: int, edges: FloatArray) -> FloatArray:
    """Return the mean amount that runs hold between n successive instants (ns), (n - 1,)."""
    rows = schedule.holdings
    mine = (rows.owner == owner) & (rows.resource == column)
    return mean_over_parts(rows.begin[mine], rows.end[mine], rows.amount[mine].astype(np.float64), edges)


def _low(k: int, top: float) -> float:
    return top * (1 + _GAP + k * (_BAND + _GAP))


def _name(machine: Machine, owner: int, column: int) -> str:
    rack, resource = int(machine.rack[owner]), machine.resources[column]
    kind = "pool" if machine.type[owner] in ("memory", "pool") and resource == "memory" else f"{machine.type[owner]} pool"
    several = sum(lane_owner == owner for lane_owner, _ in _drawn(machine)) > 1
    return f"{kind}{f' {resource}' if several else ''}{f' {rack}' if rack >= 0 else ''}"


def resource_amount(resource: str, amount: float) -> str:
    """Format an amount of a resource."""
    return format_memory(int(amount)) if resource in ("memory", "storage") else f"{amount:,.0f}"


def _relative_time(ns: float) -> str:
    duration = format_time(to_seconds(abs(int(ns))))
    return f"{duration} {'before' if ns < 0 else 'after'} the submission"


MAX_BOXES = 500
"""Maximum number of boxes of other jobs: those with the most node time in the displayed period."""
MARGIN = 0.12
"""Share of the wait that is displayed before and after it."""
_JOB, _BLOCKING, _OTHERS, _WAIT = "this job", "blocking jobs", "other jobs", "wait of this job"


def with_wait_figures(answer: Answer, explanation: Explanation, schedule: Schedule) -> Answer:
    """Add the nodes during the wait, and the memory of the job over its runs, to the answer of an explained wait."""
    drawable = _lane_resource(schedule.machine) is not None
    return replace(answer, main=gantt(explanation, schedule) if drawable else None, figures=_memory(explanation))


def _memory(explanation: Explanation) -> list[Figure]:
    """Draw the memory that the job held and used over its runs, as steps; empty if its memory does not change."""
    if not explanation.memory:
        return []
    ends = [(stretch, time) for stretch in explanation.memory for time in (stretch.begin, stretch.end)]
    held = [(stretch.local + stretch.pooled) / 1024 for stretch, _ in ends]
    used = [float("nan") if stretch.used is None else stretch.used / 1024 for stretch, _ in ends]
    return [
        Curves(
            "memory",
            f"Memory of job {explanation.job.id}",
            memory_sentence(explanation.memory),
            x=[_hours(time - explanation.job.submit) for _, time in ends],
            series={"held": held} if all(map(math.isnan, used)) else {"held": held, "used": used},
            x_axis=Axis("time since submission (h)"),
            y_axis=Axis("memory in nodes and pools (GiB)"),
        )
    ]


def longest_wait(result: StudyResult, cell: CellResult) -> Boxes | None:
    """Draw the nodes during the longest wait of any job; None if simulating the run again would take long."""
    run = result.simulated(cell)
    if cell.engine != "compiled" or _lane_resource(run.machine) is None:
        return None
    outcomes = result.outcomes(cell)
    waits = np.where(result.population(cell), wait_s(outcomes), -1.0)
    row = int(np.argmax(waits))
    schedule = simulate_again(run, outcomes)
    explanation = Explanation(schedule.workload.job(row), run.machine, (), int(outcomes.start[row]))
    drawn = gantt(explanation, schedule)
    explainable = not (run.scheduler.pass_per_event or schedule.workload.closed_loop)
    words = [
        "poolwise",
        "explain",
        "run",
        str(result.folder),
        str(explanation.job.id),
        "--cell",
        cell.key[:12],
        "--report",
        "wait.html",
    ]
    return replace(
        drawn,
        title=f"Nodes while job {explanation.job.id} waited (longest wait of all jobs)",
        caption=drawn.caption + (f" To see why it waited, run: {shlex.join(words)}" if explainable else ""),
    )


def gantt(explanation: Explanation, schedule: Schedule) -> Boxes:
    """Draw the jobs on the nodes while a job waited, with the reasons for its wait on the lowest lane."""
    submit, until = explanation.job.submit, explanation.until
    margin = max(int(MARGIN * (until - submit)), HOUR // 60)
    window = submit - margin, until + margin
    height = _lanes(schedule.machine)
    blocking = {e.reason.blocker for e in explanation.episodes}
    placed = list(_jobs(explanation, schedule, window, blocking))
    boxes = [box for _, box in placed]
    ranked = sorted((pair for pair in placed if pair[1].series == _OTHERS), key=lambda pair: -_area(pair[1]))
    others = [box for _, box in ranked[:MAX_BOXES]]
    hidden, jobs = len(ranked[MAX_BOXES:]), len({job for job, _ in ranked[MAX_BOXES:]})
    top = float(height.max())
    low = -0.12 * top
    waits = [
        Box(0.0, _hours(until - submit), low, low / 3, _WAIT, f"job {explanation.job.id} waits for {_duration(until - submit)}")
    ]
    waits = [
        Box(_hours(e.start - submit), _hours(e.end - submit), low, low / 3, held_by(e.reason.cause, e.reason.resource),
            f"{_duration(e.end - e.start)} from {_duration(e.start - submit)} after its submission: {e.reason.text}")
        for e in explanation.episodes
    ] or waits  # fmt: skip
    pools = list(pools_over_time(schedule, window, submit, top))
    drawn = [*others, *(box for box in boxes if box.series != _OTHERS), *pools, *waits]
    size, unit = shared_time_unit(to_seconds(window[1] - window[0]))
    drawn = [replace(box, left=box.left * 3600 / size, right=box.right * 3600 / size) for box in drawn]
    names = [name for name in (_OTHERS, _BLOCKING, _JOB, POOLS) if any(box.series == name for box in drawn)]
    whole = _lane_resource(schedule.machine) == "nodes"
    held = "the nodes that it held; its height is the number of nodes"
    held = held if whole else "one node; its height is the number of cores that it held there"
    return Boxes(
        "gantt",
        f"Nodes while job {explanation.job.id} waited"
        if explanation.passes
        else f"Nodes when job {explanation.job.id} was submitted",
        f"Each box is a job on {held}. The lowest lane shows "
        + ("the reasons for the wait." if explanation.passes else "the wait of this job.")
        + (" The bands at the top show the pools and their use." if pools else "")
        + (f" The {hidden:,} smallest boxes, of {jobs:,} jobs, are omitted." if hidden else ""),
        boxes=drawn,
        series=(*names, *dict.fromkeys(box.series for box in waits)),
        x_axis=Axis(f"time since submission ({unit})"),
        y_axis=Axis("", ticks=_ticks(schedule.machine, height) | pool_ticks(schedule.machine, top) | {2 * low / 3: "wait"}),
        highlight=0.0,
    )


def _jobs(
    explanation: Explanation, schedule: Schedule, window: tuple[int, int], blocking: set[int | None]
) -> Iterator[tuple[int, Box]]:
    """Yield the job (a row) and the box of each run that holds nodes within the window."""
    machine, submit = schedule.machine, explanation.job.submit
    base, rows = _lanes(machine), schedule.holdings
    drawn = _on_lanes(machine, rows) & (rows.end > window[0]) & (rows.begin < window[1])
    order = np.flatnonzero(drawn)[np.argsort(rows.begin[drawn], kind="stable")]
    busy = {
        owner: np.full(int(base[owner + 1] - base[owner]), np.iinfo(np.int64).min) for owner in set(rows.owner[drawn].tolist())
    }
    ids = schedule.workload.id
    for row in order.tolist():
        owner, begin, end = int(rows.owner[row]), int(rows.begin[row]), int(rows.end[row])
        lanes = np.flatnonzero(busy[owner] <= begin)[: int(rows.amount[row])]
        busy[owner][lanes] = end
        job = int(schedule.job[rows.run[row]])
        series = _JOB if ids[job] == explanation.job.id else _BLOCKING if job in blocking else _OTHERS
        noun = machine.resources[int(rows.resource[row])]
        text = f"job {ids[job]}: {int(rows.amount[row]):,} {noun} on {machine.owners[owner]} for {_duration(end - begin)}"
        left, right = max(begin, window[0]) - submit, min(end, window[1]) - submit
        for part in filter(len, np.split(lanes, np.flatnonzero(np.diff(lanes) > 1) + 1)):
            low, high = float(base[owner] + part[0]), float(base[owner] + part[-1] + 1)
            yield job, Box(_hours(left), _hours(right), low, high, series, text)


def _area(box: Box) -> float:
    return (box.right - box.left) * (box.high - box.low)


def _lane_resource(machine: Machine) -> str | None:
    """Return the resource whose units are the lanes; None for a machine without nodes and cores."""
    return next((name for name in ("nodes", "cores") if name in machine.resources), None)


def _on_lanes(machine: Machine, rows: Holdings) -> BoolArray:
    """Return a mask of the rows to draw, (n_row,): whole nodes, or cores of shared nodes."""
    column = machine.resource(_lane_resource(machine) or "")
    return np.asarray((machine.kind[rows.owner] == Kind.NODE) & (rows.resource == column))


def _lanes(machine: Machine) -> IntArray:
    """Return the first lane of each owner, (n_owner + 1,): a lane is a whole node, or a core of a shared node."""
    column = machine.resource(_lane_resource(machine) or "")
    count = np.where(machine.kind == Kind.NODE, machine.capacity[:, column], 0)
    return np.concatenate([[0], np.cumsum(count)])


def _ticks(machine: Machine, base: IntArray) -> dict[float, str]:
    """Return the label of each rack in the middle of its lanes."""
    labels: dict[float, str] = {}
    for rack in sorted(set(machine.rack[machine.kind == Kind.NODE].tolist())):
        mine = np.flatnonzero((machine.rack == rack) & (machine.kind == Kind.NODE))
        labels[float(base[mine[0]] + base[mine[-1] + 1]) / 2] = f"rack {rack}"
    return labels


def _hours(ns: int) -> float:
    return ns / HOUR


def _duration(ns: int) -> str:
    return format_time(to_seconds(ns))
