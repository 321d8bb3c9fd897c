"""The bounds of a search: what they rule out for all jobs of a subtree is refused to each of them."""

from __future__ import annotations

import numpy as np

from poolwise.kernels.jit import entry
from poolwise.kernels.list_scheduling.indexed import _delay
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.reservation import may_start, spare
from poolwise.kernels.list_scheduling.state import EASY, INNER, N_NOW, RESTING, WORST, Jobs, Racks, Rules

LOOKED_INTO, RULED_OUT, WRONG = range(3)


@entry
def _judge(row, jobs, rules, racks, now):
    """Whether the node over all jobs but the first, the head, is ruled out, and if so, whether one of them may start."""
    if not fits(jobs.nodes[0], jobs.remote[0], rules.anywhere, racks.then_free, racks.then_pool):
        return LOOKED_INTO  # never the state of a search: the head has room at its shadow time
    spare(0, jobs, rules, racks, now)
    if not _delay(0, row, jobs, rules, racks, now):
        return LOOKED_INTO
    for job in range(1, jobs.nodes.size):
        if may_start(job, 0, False, jobs, rules, racks, now):
            return WRONG
    return RULED_OUT


def _draw(g: np.random.Generator) -> tuple[np.ndarray, Jobs, Rules, Racks]:
    n_rack, n_job, loose = int(g.integers(1, 5)), int(g.choice([1, 2, 5])), int(g.choice([1, 3, 6]))
    free = g.integers(0, 6, n_rack)
    pool = g.integers(0, 60, n_rack) * int(g.choice([1, 1, 10]))
    racks = Racks(
        free,
        pool,
        free + g.integers(0, loose, n_rack),
        pool + g.integers(0, int(g.choice([10, 200])) * loose, n_rack),
        *(np.zeros(n_rack, dtype=np.int64) for _ in range(7)),
        node_column=0,
        memory_column=1,
    )
    wide = int(g.integers(free.max(), max(free.sum(), free.max() + 1))) + 1  # more nodes than a rack has, not than all
    of_all = [wide] * n_job if g.random() < 0.7 else g.integers(1, wide + 1, n_job)
    nodes = np.append(g.integers(1, racks.then_free.sum() + 2), of_all).astype(np.int64)
    remote = np.append(g.choice([0, 1, 5, 20]), g.integers(0, int(g.choice([2, 12, 40])), n_job)).astype(np.int64)
    length = np.ones(n_job + 1, dtype=np.int64)  # beyond the shadow time, which is now
    demands = nodes[1:], remote[1:], length[1:]
    least, most = [int(a.min()) for a in demands], [int(a.max()) for a in demands[:2]]
    row = np.array([RESTING if n_job == 1 else INNER, 1, 0, *least, *most])
    work, blank, able = np.ones(n_job + 1), np.zeros(n_job + 1), np.ones(n_job + 1, dtype=np.bool_)
    columns = [np.zeros(n_job + 1, dtype=np.int64), nodes, remote, able, work, work, *[blank] * 5, length]
    for column in columns:
        column.setflags(write=False)
    return row, Jobs(*columns), Rules(bool(g.random() < 0.2), EASY, WORST, WORST, False, 0, False), racks


def test_what_is_ruled_out_of_a_subtree_is_refused_to_each_of_its_jobs() -> None:
    g = np.random.default_rng(4)
    now = np.zeros(N_NOW, dtype=np.int64)
    ruled_out = split = 0
    for _ in range(20_000):
        row, jobs, rules, racks = _draw(g)
        verdict = _judge(row, jobs, rules, racks, now)
        assert verdict != WRONG, (row, jobs.nodes, jobs.remote, rules, racks)
        if verdict == RULED_OUT:
            ruled_out += 1
            split += bool(racks.free.max() < jobs.nodes[1:].min() and racks.free.sum() >= jobs.nodes[1:].max())
    assert ruled_out > 2000 and split > 100
