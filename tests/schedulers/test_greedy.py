"""Greedy baselines: least allocated, and local devices first."""

import numpy as np

from poolwise.engines import simulate
from poolwise.model import Workload
from poolwise.quantities import SECOND
from poolwise.schedulers.greedy import LeastAllocated, LocalFirstRandom
from tests.helpers.gpu_nodes import gpu_nodes


def placements(machine, scheduler, seed=0, **requests):
    n = len(next(iter(requests.values())))
    workload = Workload.of(
        np.arange(n) * SECOND, np.full(n, 100 * SECOND), requests={k: np.array(v) for k, v in requests.items()}
    )
    schedule = simulate(workload, machine, scheduler, seed=seed).schedule
    return schedule, [[owner for owner, _, _ in schedule.placement_of(k)] for k in range(schedule.n_run)]


def test_node_with_the_largest_remaining_share_is_chosen():
    # 8 cores and 64 MiB each: the first job makes node 0 the fuller one; the third fills memory rather than cores.
    _, owners = placements(gpu_nodes((0, 0)), LeastAllocated(), cores=[4, 1, 1], memory=[0, 40, 8])
    assert [row[0] for row in owners] == [0, 1, 0]


def test_local_devices_come_before_random_remote_ones():
    machine = gpu_nodes((1, 4, 4), cores=1)  # owners: nodes 0 to 2, GPUs 3, 4 to 7, 8 to 11
    far = set()
    for seed in range(8):
        schedule, owners = placements(machine, LocalFirstRandom(), seed, cores=[1, 1, 1], gpu=[4, 4, 1])
        assert sorted(owners[0]) == [1, 4, 5, 6, 7]
        assert sorted(owners[1]) == [2, 8, 9, 10, 11]
        assert owners[2] == [0, 3]
        _, owners = placements(gpu_nodes((0, 4, 4), cores=1), LocalFirstRandom(), seed, cores=[1, 1, 1], gpu=[3, 3, 1])
        far.add(owners[2][1])
    assert (schedule.start == schedule.workload.submit).all()
    assert len(far) == 2  # the only GPU left on each of the other nodes


def test_job_that_does_not_fit_blocks_no_other():
    schedule, _ = placements(gpu_nodes((2, 0)), LeastAllocated(), cores=[8, 8, 1], gpu=[2, 1, 0])
    assert (schedule.job_start / SECOND).tolist() == [0, 100, 2]
