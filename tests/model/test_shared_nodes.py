"""View of shared nodes, compared with loops over the machine's owners."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.model import Kind, Machine
from poolwise.model.membership import left
from poolwise.model.shared_nodes import shared_nodes
from tests.helpers.gpu_nodes import gpu_nodes


def racks(pools, nodes=(0, 1, 1), whole=()):
    """Make shared nodes in racks, memory pools in racks (-1: of the machine), and groups of whole nodes in racks."""
    owners = [(Kind.NODE, rack, (4, 8, 0)) for rack in nodes]
    owners += [(Kind.POOL, rack, (0, 9, 0)) for rack in pools]
    owners += [(Kind.NODE, rack, (0, 0, 3)) for rack in whole]
    n = len(owners)
    return Machine(
        name="racks",
        owners=tuple(f"o{k}" for k in range(n)),
        kind=np.array([kind for kind, _, _ in owners]),
        type=("any",) * n,
        rack=np.array([rack for _, rack, _ in owners]),
        position=np.zeros((n, 2), dtype=np.int64),
        home=np.full(n, -1),
        resources=("cores", "memory", "nodes"),
        capacity=np.array([amounts for _, _, amounts in owners]),
    )


@given(st.lists(st.integers(0, 3), min_size=2, max_size=5), st.integers(0, 2), st.booleans())
def test_devices_are_in_the_nodes_that_are_present(gpus, rack_gpus, gone):
    machine = gpu_nodes(gpus, rack_gpus=rack_gpus)
    if gone:  # the first node leaves with its devices
        machine = left(machine, (0, *np.flatnonzero(machine.home == 0).tolist()))
    view = shared_nodes(machine)
    assert view is shared_nodes(machine)
    assert view.nodes.tolist() == list(range(gone, len(gpus)))
    assert view.names == ("cores", "memory")
    assert view.columns.tolist() == [0, 1]
    devices = [o for o in range(machine.n_owner) if machine.kind[o] == Kind.DEVICE]
    assert view.devices.tolist() == devices
    assert [view.nodes[k] if k >= 0 else -1 for k in view.home.tolist()] == [
        -1 if gone and machine.home[o] == 0 else machine.home[o] for o in devices
    ]
    there = [o for o in devices if machine.capacity[o, 2]]
    assert view.only(view.having("devices", "no such resource")).devices.tolist() == there
    assert not view.having("bandwidth").any()
    assert {name: owners.tolist() for name, owners in view.by_type().items()} == ({"gpu": devices} if devices else {})
    assert view.column("bandwidth") == 3
    assert view.column("storage") == -1


def test_node_uses_the_pool_of_its_rack_or_of_the_machine():
    assert shared_nodes(racks([1, 0])).pools("memory").tolist() == [4, 3, 3]
    assert shared_nodes(racks([1, -1])).pools("memory").tolist() == [4, 3, 3]
    assert shared_nodes(racks([1, 1])).pools("memory").tolist() == [-1, 3, 3]
    assert shared_nodes(racks([1])).pools("storage").tolist() == [-1, -1, -1]


def test_whole_nodes_are_not_shared_nodes():
    assert shared_nodes(racks([], whole=[2])).nodes.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="'racks' has no shared nodes") as error:
        shared_nodes(racks([0], nodes=[], whole=[0]))
    assert error.value.remedy == 'write allocation = "shared" and cores in every [[node]]'
    with pytest.raises(InputError, match="no shared nodes with cores and storage") as error:
        shared_nodes(racks([]), "cores", "storage")
    assert error.value.remedy == 'write allocation = "shared", cores and storage in every [[node]]'
