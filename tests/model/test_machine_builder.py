"""Machine builder, compared with arrays written by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.model import Kind, Machine, MachineBuilder

INT = np.dtype(np.int64)


def two_nodes() -> MachineBuilder:
    """Build nodes on two shelves of rack 3, a GPU in the second, and a pool of the machine, all on one switch."""
    build = MachineBuilder("two nodes")
    nodes = [build.node(f"node{k}", rack=3, shelf=k, cores=32, memory="256 GiB") for k in range(2)]
    build.device("gpu", home=nodes[1], devices=1, attributes={"price": 7.5})
    build.pool("pool", rack=-1, memory="1 TiB")
    for node in nodes:
        build.link(f"port{node}", node, "switch", bandwidth="10 GB/s", latency=50)
    return build


def test_builder_makes_the_arrays_written_by_hand() -> None:
    machine = Machine.of(two_nodes())
    assert (machine.name, machine.owners) == ("two nodes", ("node0", "node1", "gpu", "pool", "port0", "port1"))
    assert machine.kind.tolist() == [Kind.NODE, Kind.NODE, Kind.DEVICE, Kind.POOL, Kind.LINK, Kind.LINK]
    assert machine.type == ("node", "node", "device", "pool", "link", "link")
    assert machine.position.tolist() == [[3, 0], [3, 1], [3, 1], [-1, 0], [0, 0], [0, 0]]
    assert machine.rack.tolist() == [3, 3, 3, -1, 0, 0] and machine.home.tolist() == [-1, -1, 1, -1, -1, -1]
    assert machine.resources == ("memory", "bandwidth", "cores", "devices")
    node, port = [256 * 1024, 0, 32, 0], [0, 10_000, 0, 0]
    assert machine.capacity.tolist() == [node, node, [0, 0, 0, 1], [1024 * 1024, 0, 0, 0], port, port]
    assert np.array_equal(machine.attributes["price"], [np.nan, np.nan, 7.5, np.nan, np.nan, np.nan], equal_nan=True)
    fabric = machine.fabric
    assert fabric is not None and fabric.link.tolist() == [4, 5] and fabric.latency.tolist() == [50, 50]
    assert fabric.vertex.tolist() == [0, 2, 2, -1, -1, -1] and fabric.ends.tolist() == [[0, 1], [2, 1]]
    assert fabric.path(0, 2) == (0, 1) and fabric.path(1, 2) == ()


def test_columns_and_vertices_keep_the_order_given() -> None:
    build = MachineBuilder("ordered", ("slots", "bandwidth", "cores"))
    node, data = build.node("node", slots=1), build.pool("data")
    build.attach(data, "shelf")
    build.vertices(["switch", "shelf", node])
    build.link("a", node, "switch", bandwidth=1)
    build.link("b", "shelf", "switch", bandwidth=2)
    machine = Machine.of(build)
    assert machine.resources == ("slots", "bandwidth", "cores")
    assert machine.capacity.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 2, 0]]
    assert machine.fabric is not None and machine.fabric.vertex.tolist() == [2, 1, -1, -1]
    assert machine.fabric.ends.tolist() == [[2, 0], [1, 0]]


@given(st.integers(1, 4), st.integers(0, 9), st.integers(0, 99), st.one_of(st.none(), st.integers(0, 99)), st.integers(1, 8))
def test_of_racks_makes_nodes_and_pools(racks: int, nodes: int, local: int, pool: int | None, cores: int) -> None:
    machine = Machine.of_racks(racks, nodes, local=local, pool=pool, cores=cores)
    n = racks if pool is None else 2 * racks
    rack = np.concatenate([np.arange(racks)] * (n // racks))
    is_node, none = np.arange(n) < racks, np.zeros(n)
    expected = {
        "kind": np.where(is_node, Kind.NODE, Kind.POOL),
        "rack": rack,
        "position": np.stack([rack, none], axis=1),
        "home": none - 1,
        "capacity": np.stack([np.where(is_node, nodes, 0), np.where(is_node, 0, pool or 0)], axis=1),
    }
    for name, values in expected.items():
        array = getattr(machine, name)
        assert array.dtype == INT and np.array_equal(array, values), name
    for name, each in (("memory", local), ("cores", cores)):
        assert machine.per_node[name].dtype == INT
        assert machine.per_node[name].tolist() == np.where(is_node, each, 0).tolist()
    assert tuple(machine.per_node) == ("memory", "cores") and machine.resources == ("nodes", "memory")


def test_invalid_amounts_and_links_are_named() -> None:
    build = MachineBuilder("wrong", ("memory", "bandwidth"))
    for wrong, field in (({"memory": "12 parsec"}, "memory"), ({"cores": 3}, "")):
        with pytest.raises(InputError) as error:
            build.node("node", **wrong)
        assert (error.value.field or "") == field
    with pytest.raises(InputError, match="no owner has the number 0"):
        build.link("link", 0, "switch", bandwidth=1)
    assert not build.owners


def test_summary_omits_pools_of_a_machine_without_them() -> None:
    build = MachineBuilder("nodes")
    build.node("node", cores=32, memory="256 GiB")
    assert Machine.of(build).summary() == {"shared nodes": "1"}
    assert Machine.of(two_nodes()).summary()["memory in pools"] == "1 TiB"
