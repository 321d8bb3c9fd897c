from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from poolwise.model import Machine
from poolwise.traces.demand import Demand, max_per_node, split_over_nodes
from tests.helpers.shared_nodes import shared_nodes

jobs = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 300_000), st.integers(0, 2**20), st.integers(0, 40_000)),
    min_size=1,
    max_size=6,
)


def demand(rows):
    parts, cpu, memory, gpu = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Demand(parts, cpu, memory.astype(np.float64), gpu)


def whole_nodes(cores, gpus):
    return replace(Machine.of_racks(1, 4), per_node={"cores": np.array([cores]), "gpu": np.array([gpus])})


@given(jobs, st.integers(1, 64), st.integers(1, 8))
def test_job_takes_fewest_whole_nodes_with_all_its_memory(rows, cores, gpus):
    request = demand(rows).to_request(whole_nodes(cores, gpus))
    assert request.repaired == {}
    for (parts, cpu, memory, gpu), nodes, each in zip(
        rows, *(request.amounts[n].tolist() for n in ("nodes", "memory")), strict=True
    ):
        assert nodes * cores * 1000 >= cpu
        assert nodes * gpus * 1000 >= gpu
        assert nodes == 1 or (nodes - 1) * cores * 1000 < cpu or (nodes - 1) * gpus * 1000 < gpu
        assert memory * parts <= nodes * each
        assert each <= memory * parts


@given(jobs)
def test_shared_node_tasks_cover_the_job_and_rounding_is_counted(rows):
    machine = shared_nodes(cores=64, gpu_milli=8000, memory=1)
    request = demand(rows).to_request(machine)
    assert request.tasks.tolist() == [parts for parts, *_ in rows]
    assert request.amounts["memory"].tolist() == [memory for _, _, memory, _ in rows]
    for name, unit, column, what in (("cores", 1000, 1, "CPUs"), ("gpu_milli", 1, 3, "GPUs")):
        wanted = np.array([row[column] for row in rows])
        if not wanted.any():
            assert name not in request.amounts
            continue
        more = request.amounts[name] * request.tasks * unit - wanted
        assert ((more >= 0) & (more < request.tasks * unit)).all()
        assert request.repaired.get(f"{what} rounded up to a whole number of '{name}' on each node", 0) == (more > 0).sum()


def test_missing_resources_are_ignored_and_counted():
    some = demand([(1, 1000, 5, 1000), (1, 2000, 5, 0)])
    for machine in (Machine.of_racks(1, 1), whole_nodes(1, 0), shared_nodes(cores=8, memory=9)):
        request = some.to_request(machine)
        assert request.repaired == {"GPUs ignored, because the machine's nodes have none": 1}
        assert "gpu" not in request.amounts
    with pytest.raises(InputError, match="1 job requests no resource") as caught:
        some.to_request(shared_nodes(gpu=8))
    assert caught.value.remedy


def test_max_per_node_ignores_pools():
    assert max_per_node(Machine.of_racks(1, 4, local=10, pool=99), "memory") == 0
    assert max_per_node(shared_nodes(gpu=8), "gpu") == 8
    assert max_per_node(shared_nodes(gpu=8), "fpga") == 0


@given(jobs, st.integers(1, 64))
def test_separate_parts_cover_the_job_and_fit_a_node(rows, cores):
    request = demand(rows).to_request(shared_nodes(cores=cores, gpu_milli=8000, memory=1), separate_nodes=True)
    nodes = request.amounts.get("nodes", np.ones(len(rows), dtype=np.int64))
    assert (request.tasks == 1).all()
    assert (request.amounts["cores"] <= cores).all()
    amounts = (request.amounts.get(name, np.zeros_like(nodes)).tolist() for name in ("cores", "memory", "gpu_milli"))
    for (parts, cpu, memory, gpu), n, each, mib, gpus in zip(rows, nodes.tolist(), *amounts, strict=True):
        assert n >= parts and n * each * 1000 >= cpu and n * gpus >= gpu
        assert n == parts or (n - 1) * cores * 1000 < cpu  # divided only if no node is as large
        assert n * mib >= parts * memory > (mib - 1) * n or memory == mib == 0


@given(st.lists(st.integers(1, 1000), min_size=1), st.lists(st.integers(1, 64), min_size=1, max_size=9))
def test_processors_are_split_over_common_nodes(processors, sizes):
    capacity = np.array(sizes, dtype=np.int64)[:, None]
    n = len(sizes)
    machine = Machine(
        "m", tuple(map(str, range(n))), np.zeros(n, dtype=np.int64), ("n",) * n, np.zeros(n, dtype=np.int64),
        np.zeros((n, 2), dtype=np.int64), np.full(n, -1), ("cores",), capacity,
    )  # fmt: skip
    parts, cores = split_over_nodes(np.array(processors), machine)
    common = max((sizes.count(size), size) for size in sizes)[1]
    for p, k, c in zip(processors, parts.tolist(), cores.tolist(), strict=True):
        assert k == (1 if p <= max(sizes) else -(-p // common))
        assert 0 <= k * c - p < k


def test_whole_nodes_of_different_sizes_take_jobs_by_the_nodes_of_their_partition(tmp_path):
    (tmp_path / "machine.toml").write_text(MIXED)
    machine = load_machine(tmp_path / "machine.toml")
    parts, cpu = np.array([1, 1, 2, 4, 1]), np.array([128, 128, 256, 128, 160]) * 1000
    log = Demand(parts, cpu, np.full(5, 100.0), np.zeros(5, dtype=np.int64), np.array(["fat", "", "", "", ""]))
    request = log.to_request(machine)
    # 128 CPUs on one node fit a fat node; 32 on each of four nodes do not need one; 160 on one node fit none
    assert request.amounts["nodes"].tolist() == [1, 1, 2, 4, 5]
    assert request.amounts["memory"].tolist() == [100, 100, 100, 100, 20]


MIXED = """version = 1
[[node]]
name = "thin"
cores = 32
[[node]]
name = "fat"
cores = 128
[[rack]]
nodes = { thin = 8, fat = 2 }
[[partition]]
name = "all"
nodes = ["*"]
default = true
[[partition]]
name = "fat"
nodes = ["fat"]
"""


def test_jobs_that_were_alone_on_large_nodes_fit_the_small_ones_of_their_partition(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(
        'version = 1\nname = "x"\n'
        '[[node]]\nname = "small"\nallocation = "shared"\ncores = 16\n'
        '[[node]]\nname = "large"\nallocation = "shared"\ncores = 64\n'
        "[[rack]]\nnodes = { small = 4, large = 2 }\n"
        '[[partition]]\nname = "whole"\nnodes = ["small", "large"]\ndefault = true\nexclusive = true\n'
        '[[partition]]\nname = "large"\nnodes = ["large"]\nexclusive = true\n'
        '[[partition]]\nname = "parts"\nnodes = ["small", "large"]\n'
    )
    cpus, parts = np.array([64, 80, 16, 128, 64]), np.array([1, 2, 1, 2, 1])
    partition = np.array(["whole", "", "whole", "large", "parts"])
    jobs = Demand(parts, cpus * 1000, np.zeros(5), np.zeros(5, dtype=np.int64), partition)
    machine, requested = load_machine(path), np.array([0, 40, 64, 2, 1])
    unknown, counts = jobs.within_exclusive_nodes(machine, np.zeros(5, dtype=np.int64))
    assert [*counts.values()] == [2]
    assert unknown.cpu_milli.tolist() == [16_000, 32_000, 16_000, 128_000, 64_000]
    # 40 CPUs on two nodes need the large ones; no request exceeds what the job got
    assert jobs.within_exclusive_nodes(machine, requested)[0].cpu_milli.tolist() == [16_000, 40_000, 16_000, 128_000, 64_000]
