"""Closed-form verdicts on jobs and subtrees, compared with placing each job."""

from __future__ import annotations

import numpy as np
import pytest

from poolwise.kernels.common.state import EASY, EASY_NO_EXTRA, LEAF, WORST, record
from poolwise.kernels.jit import entry
from poolwise.kernels.list_scheduling.closed_form import prepare_bounds
from poolwise.kernels.list_scheduling.indexed import _classify_subtree
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.reservation import compute_extra, may_start
from poolwise.kernels.list_scheduling.state import (
    BLOCKED,
    STARTABLE,
    UNDECIDED,
    JobArrays,
    RackArrays,
    RackNow,
    RackState,
    Rules,
)

pytestmark = pytest.mark.long

WINDOW = 5


@entry
def _judge(rows, state, answers, model):
    """Write the verdict on each node (the jobs' leaves, then their common root) and the jobs that may start.

    The first job is the head. Returns False for states that never occur in a search: the head fits now, or does not fit at
    its shadow time.
    """
    jobs, rules, racks = state.jobs, state.rules, state.racks
    n, remote = jobs.nodes[0], jobs.remote[0]
    if not fits(0, n, remote, rules.anywhere, None, racks.shadow_free, racks.shadow_pool):
        return False
    if fits(0, n, remote, rules.anywhere, None, racks.free, racks.pool):
        return False
    compute_extra(0, state)
    if rules.closed:
        prepare_bounds(0, state)
    for k in range(answers.size):
        answers[k] = _classify_subtree(0, rows[k], state)
    for job in range(1, jobs.nodes.size):
        model[job - 1] = may_start(job, 0, state)
    return True


def _one(g: np.random.Generator, *of: int) -> int:
    """Choose one of a few numbers; ten times faster than `Generator.choice`."""
    return of[int(g.integers(len(of)))]


def _draw(g: np.random.Generator) -> tuple[np.ndarray, JobArrays, Rules, RackArrays]:
    n_rack, n_job, loose = int(g.integers(1, 5)), _one(g, 1, 2, 5), _one(g, 1, 3, 6)
    free = g.integers(0, 6, n_rack)
    pool = g.integers(0, 60, n_rack) * _one(g, 1, 1, 10)
    racks = RackArrays(
        free,
        pool,
        free + g.integers(0, loose, n_rack),
        pool + g.integers(0, _one(g, 10, 200) * loose, n_rack),
        np.zeros(n_rack, dtype=np.int64),
        np.zeros(n_rack, dtype=np.int64),
        g.permutation(n_rack),
        np.zeros((n_rack, 4), dtype=np.int64),
        *(np.zeros(n_rack, dtype=np.int64) for _ in range(6)),
        node_column=0,
        memory_column=1,
    )
    wide = int(g.integers(free.max(), max(free.sum(), free.max() + 1))) + 1  # more nodes than a rack has, not than all
    of_all = [wide] * n_job if g.random() < 0.5 else g.integers(1, wide + 1, n_job)
    nodes = np.append(g.integers(1, racks.shadow_free.sum() + 2), of_all).astype(np.int64)
    remote = np.append(_one(g, 0, 1, 5, 20), g.integers(0, _one(g, 2, 12, 40), n_job)).astype(np.int64)
    length = g.integers(1, 2 * WINDOW, n_job + 1) if g.random() < 0.5 else np.full(n_job + 1, 2 * WINDOW)
    each = [[LEAF, job, 0, n, m, t, n, m] for job, (n, m, t) in enumerate(zip(nodes, remote, length, strict=True))]
    demands = np.array(each[1:])[:, 3:]
    both = [1, 1, 0, *demands.min(axis=0)[:3], *demands.max(axis=0)[3:]]
    blank, able, awaited = np.zeros(n_job + 1), np.ones(n_job + 1, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    columns = [
        np.zeros(n_job + 1, dtype=np.int64),
        nodes,
        remote,
        able,
        length,
        length,
        length,
        length,
        *[blank] * 6,
        awaited,
    ]
    for column in columns:
        column.setflags(write=False)
    backfill = EASY if g.random() < 0.9 else EASY_NO_EXTRA
    anywhere = bool(g.random() < 0.2)
    rules = Rules(anywhere, not anywhere, anywhere, False, backfill, WORST, WORST, False, 0, False, False, False, 0, 0.0, 1)
    return np.array([*each[1:], both]), JobArrays(*columns, mixed=None), rules, racks


def test_closed_form_verdicts_match_exact_placement() -> None:
    """A STARTABLE job may start and a BLOCKED one may not; if a subtree is BLOCKED, none of its jobs may start."""
    g = np.random.default_rng(4)
    now = record(RackNow)
    now.shadow = WINDOW
    counts: dict[tuple[str, int], int] = {}
    for _ in range(40_000):
        rows, jobs, rules, racks = _draw(g)
        answers, model = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows) - 1, dtype=np.bool_)
        state = RackState(jobs, None, None, rules, racks, None, None, None, None, now)
        if not _judge(rows, state, answers, model):
            continue
        case = (rows, jobs.nodes, jobs.remote, rules, racks)
        for k, may in enumerate(model):
            assert answers[k] != STARTABLE or (may and not rules.anywhere), case
            assert answers[k] != BLOCKED or not may, case
            split = "split" if jobs.nodes[k + 1] > racks.free.max() else "whole"
            counts[split, int(answers[k])] = counts.get((split, int(answers[k])), 0) + 1
        assert answers[-1] != STARTABLE and not (answers[-1] == BLOCKED and model.any()), case
        counts["all", int(answers[-1])] = counts.get(("all", int(answers[-1])), 0) + 1
    assert (
        min(counts.get((kind, answer), 0) for kind in ("split", "whole") for answer in (STARTABLE, UNDECIDED, BLOCKED)) > 300
    ), counts
    assert min(counts.get(("all", answer), 0) for answer in (UNDECIDED, BLOCKED)) > 1000, counts
