"""What a search is told of a subtree or a job without placing anyone, against placing each job."""

from __future__ import annotations

import numpy as np
import pytest

from poolwise.kernels.jit import entry
from poolwise.kernels.list_scheduling.closed_form import weigh
from poolwise.kernels.list_scheduling.indexed import _ask
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.reservation import may_start, spare
from poolwise.kernels.list_scheduling.state import (
    EASY,
    EASY_NO_EXTRA,
    N_NOW,
    PERHAPS,
    REFUSED,
    RESTING,
    SHADOW,
    WELCOME,
    WORST,
    JobArrays,
    RackArrays,
    Rules,
)

pytestmark = pytest.mark.long

WINDOW = 5


@entry
def _judge(rows, jobs, rules, racks, now, says, truth):
    """Write what is said of each node, the jobs' own first and then the one over them all, and which jobs may start.

    The first job is the head. False if this is never the state of a search: the head finds room now, or has none at its
    shadow time.
    """
    n, remote = jobs.nodes[0], jobs.remote[0]
    if not fits(n, remote, rules.anywhere, racks.then_free, racks.then_pool):
        return False
    if fits(n, remote, rules.anywhere, racks.free, racks.pool):
        return False
    spare(0, jobs, rules, racks, now)
    if not rules.anywhere:
        weigh(0, jobs, rules, racks, now)
    for k in range(says.size):
        says[k] = _ask(0, rows[k], jobs, rules, racks, now)
    for job in range(1, jobs.nodes.size):
        truth[job - 1] = may_start(job, 0, jobs, rules, racks, now)
    return True


def _one(g: np.random.Generator, *of: int) -> int:
    """Choose one of a few numbers; ten times as fast as `Generator.choice`."""
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
    nodes = np.append(g.integers(1, racks.then_free.sum() + 2), of_all).astype(np.int64)
    remote = np.append(_one(g, 0, 1, 5, 20), g.integers(0, _one(g, 2, 12, 40), n_job)).astype(np.int64)
    length = g.integers(1, 2 * WINDOW, n_job + 1) if g.random() < 0.5 else np.full(n_job + 1, 2 * WINDOW)
    each = [[RESTING, job, 0, n, m, t, n, m] for job, (n, m, t) in enumerate(zip(nodes, remote, length, strict=True))]
    demands = np.array(each[1:])[:, 3:]
    both = [1, 1, 0, *demands.min(axis=0)[:3], *demands.max(axis=0)[3:]]
    blank, able, sought = np.zeros(n_job + 1), np.ones(n_job + 1, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
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
        sought,
    ]
    for column in columns:
        column.setflags(write=False)
    backfill = EASY if g.random() < 0.9 else EASY_NO_EXTRA
    rules = Rules(bool(g.random() < 0.2), backfill, WORST, WORST, False, 0, False, False, False, 0, 0.0, 1)
    return np.array([*each[1:], both]), JobArrays(*columns), rules, racks


def test_what_is_said_without_placing_is_what_placing_says() -> None:
    """Of a single job: who is welcome may start, who is refused may not. Of several: if they are refused, none may."""
    g = np.random.default_rng(4)
    now = np.zeros(N_NOW, dtype=np.int64)
    now[SHADOW] = WINDOW
    told: dict[tuple[str, int], int] = {}
    for _ in range(40_000):
        rows, jobs, rules, racks = _draw(g)
        says, truth = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows) - 1, dtype=np.bool_)
        if not _judge(rows, jobs, rules, racks, now, says, truth):
            continue
        case = (rows, jobs.nodes, jobs.remote, rules, racks)
        for k, may in enumerate(truth):
            assert says[k] != WELCOME or (may and not rules.anywhere), case
            assert says[k] != REFUSED or not may, case
            split = "split" if jobs.nodes[k + 1] > racks.free.max() else "whole"
            told[split, int(says[k])] = told.get((split, int(says[k])), 0) + 1
        assert says[-1] != WELCOME and not (says[-1] == REFUSED and truth.any()), case
        told["all", int(says[-1])] = told.get(("all", int(says[-1])), 0) + 1
    assert min(told.get((kind, said), 0) for kind in ("split", "whole") for said in (WELCOME, PERHAPS, REFUSED)) > 300, told
    assert min(told.get(("all", said), 0) for said in (PERHAPS, REFUSED)) > 1000, told
