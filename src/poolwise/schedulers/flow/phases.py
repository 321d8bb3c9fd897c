"""All phases of a round, and the treatment of jobs that can be placed only in part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.model import Placement, Start
from poolwise.schedulers.flow.classes import rank_within
from poolwise.schedulers.flow.device_phase import place_devices
from poolwise.schedulers.flow.node_phase import place_on_nodes
from poolwise.schedulers.flow.round import Round


@dataclass(frozen=True, eq=False)
class RoundPlacement:
    """Placement of the tasks and devices of a round.

    Attributes
    ----------
    job, node : (n_task,) job of each task (a position in the round's jobs, ascending), and its node, -1 without one
    sub_task : kind -> (n_sub,) task of each of its sub-tasks
    owner : kind -> (n_sub,) device of each sub-task, -1 without one
    whole, part : (n_job,) True if a job was placed completely, or only in part
    """

    job: IntArray
    node: IntArray
    sub_task: dict[str, IntArray]
    owner: dict[str, IntArray]
    whole: BoolArray
    part: BoolArray


def solve_phases(state: Round, jobs: IntArray) -> RoundPlacement:
    """Run every phase once for some jobs of the round, (k,) positions, ascending."""
    job = np.repeat(jobs, state.tasks[jobs])
    node = place_on_nodes(state, job)
    demand = state.shapes.demand[state.of[job]]
    complete = node >= 0
    sub_task, owner = {}, {}
    for k, kind in enumerate(state.layout.kinds, start=len(state.layout.columns)):
        mine = sub_task[kind] = np.repeat(np.arange(len(job)), np.where(node >= 0, demand[:, k], 0))
        owner[kind] = place_devices(state, kind, job[mine], node[mine])
        complete[mine[owner[kind] < 0]] = False
    n = len(state.jobs)
    placed = np.bincount(job[node >= 0], minlength=n) > 0
    wanted = np.zeros(n, dtype=np.int64)
    wanted[jobs] = state.tasks[jobs]
    whole = (wanted > 0) & (np.bincount(job[complete], minlength=n) == wanted)
    return RoundPlacement(job, node, sub_task, owner, whole, placed & ~whole)


def solve_gangs(state: Round, jobs: IntArray) -> tuple[RoundPlacement, BoolArray]:
    """Solve until no job is placed only in part; also return a mask of the withdrawn jobs, (n_job,).

    Each iteration withdraws only the partly placed job that has waited least (ties: highest id) and solves all phases again
    without it, so that other jobs may complete with its nodes and devices. Withdrawing all partly placed jobs at once, as
    with `solve_again = False`, could recur in every round with the same jobs.
    """
    withdrawn = np.zeros(len(state.jobs), dtype=np.bool_)
    outcome = solve_phases(state, jobs)
    for _ in range(len(jobs) - 1 if state.options.solve_again else 0):
        if not outcome.part.any():
            break
        withdrawn[np.flatnonzero(outcome.part)[-1]] = True  # jobs are in queue order
        outcome = solve_phases(state, jobs[~withdrawn[jobs]])
    return outcome, withdrawn | outcome.part


def starts(state: Round, outcome: RoundPlacement) -> list[Start]:
    """Return the starts of completely placed jobs, in queue order."""
    layout = state.layout
    whole = outcome.whole[outcome.job]
    task = np.flatnonzero(whole)
    demand = state.shapes.demand[state.of[outcome.job[task]], : len(layout.columns)]
    row, column = np.nonzero(demand)
    parts = [(task[row], layout.nodes[outcome.node[task[row]]], layout.columns[column], demand[row, column])]
    bare = task[~demand.any(axis=1)]  # a task without demand on its node still occupies the node
    parts.append((bare, layout.nodes[outcome.node[bare]], np.full(len(bare), layout.columns[0]), np.zeros_like(bare)))
    for kind in layout.kinds:
        sub = outcome.sub_task[kind]
        keep = whole[sub]
        mine = sub[keep]
        parts.append((mine, outcome.owner[kind][keep], np.full_like(mine, layout.device_column), np.ones_like(mine)))
    rows = [np.concatenate([part[k] for part in parts]) for k in range(4)]
    order = np.lexsort((rows[2], rows[1], rows[0]))
    of, owner, resource, amount = (values[order] for values in rows)
    number = rank_within(outcome.job)[of]
    bounds = np.searchsorted(outcome.job[of], np.arange(len(state.jobs) + 1)).tolist()
    complete = []
    for job in np.flatnonzero(outcome.whole).tolist():
        rows_of, numbers = slice(bounds[job], bounds[job + 1]), state.numbers[job]
        placement = Placement(np.take(numbers, number[rows_of]), owner[rows_of], resource[rows_of], amount[rows_of])
        complete.append(Start(int(state.jobs[job]), numbers, placement))
    return complete
