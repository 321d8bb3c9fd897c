"""Nodes of a machine as arrays of the kernel."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.kernel_arrays import blank
from poolwise.engines.shared_nodes.kinds import JobKinds
from poolwise.engines.shared_nodes.windows import open_sets, window_groups
from poolwise.kernels.shared_nodes.state import CORES, MEMORY, WORD, NodeArrays
from poolwise.model import JobTable, Machine
from poolwise.model.eligibility import eligible_owners, eligible_sets
from poolwise.model.rules import NodeRule
from poolwise.policies.placement.nodes.layout import NodeLayout

MAX_RELEASED = 64
"""Maximum number of nodes with released capacity to test one by one for a job that did not fit; if more, search all nodes."""


def node_arrays(machine: Machine, jobs: JobTable, layout: NodeLayout, grouped: JobKinds, placed: NodeRule) -> NodeArrays:
    """Build the arrays of empty nodes for kinds of jobs and a placement, in order of their weights, or by rack.

    First fit and sequences take the first nodes that hold a part; ordered by weight, they thus prefer low weights.
    """
    n = len(layout.nodes)
    place = np.argsort(layout.weight, kind="stable")
    if placed.prefers in ("packed", "tree"):
        place = np.argsort(layout.rack, kind="stable")
    owner, types = layout.nodes[place], [owners[place] for owners in layout.inside.values()]
    leaves, counted = 1 << (n - 1).bit_length(), len(grouped.names) - len(types)
    columns = [layout.counted[0][1], layout.memory, *(column for _, column in layout.counted[1:])]
    top = np.full((2 * leaves, len(grouped.names)), -1, dtype=np.int64)
    leaf = top[leaves : leaves + n]
    for d, column in enumerate(columns):
        leaf[:, d] = machine.capacity[owner, column] if column >= 0 else 0
    devices = np.full((n, len(types), max((owners.shape[1] for owners in types), default=0)), -1, dtype=np.int64)
    for t, owners in enumerate(types):
        devices[:, t, : owners.shape[1]] = owners
        leaf[:, counted + t] = (owners >= 0).sum(axis=1)
    sets = eligible_sets(machine, jobs).value
    inside = np.array([eligible_owners(machine, *value)[owner] for value in sets], dtype=np.bool_).reshape(-1, n)
    groups, _ = window_groups(machine, owner)
    inside = open_sets(inside, groups)
    within = np.zeros((len(inside), 2 * leaves), dtype=np.bool_)
    within[:, leaves : leaves + n] = inside
    for t in range(leaves - 1, 0, -1):
        top[t] = np.maximum(top[2 * t], top[2 * t + 1])
        within[:, t] = within[:, 2 * t] | within[:, 2 * t + 1]
    pool, of = layout.pool[place], np.full(n, -1, dtype=np.int64)
    pools, of[pool >= 0] = np.unique(pool[pool >= 0], return_inverse=True)
    racks, rack = np.unique(layout.rack[place], return_inverse=True)
    with_cores, bits = _by_free_cores(leaf[:, CORES], placed)
    return NodeArrays(
        top=top,
        open=within,
        group=(groups.astype(np.int64) << np.arange(len(groups))[:, None]).sum(axis=0),
        rack=rack.astype(np.int64),
        first=np.searchsorted(rack, np.arange(len(racks) + 1)),
        last_rack=blank(1),
        number=place + (n + 1) * layout.weight[place],
        pool_of=of,
        distant=machine.rack[pools] < 0,
        pool=machine.capacity[pools, layout.memory] if len(pools) else blank(0),
        released=blank(MAX_RELEASED),
        with_cores=with_cores,
        bits=bits,
        idle=(1 << leaf[:, counted:]) - 1,
        chosen=blank(n),
        borrow=blank(n),
        key=blank(n),
        line=blank(n),
        tally=blank(len(racks)),
        owner=owner.astype(np.int64),
        pool_owner=pools.astype(np.int64),
        device=devices,
        column=np.array([*columns, *(layout.device_column for _ in types)], dtype=np.int64),
        order=np.argsort(np.array(columns), kind="stable"),
    )


def _by_free_cores(free: IntArray, placed: NodeRule) -> tuple[IntArray, IntArray]:
    """Return the number of nodes with at least k free cores, (n_class,), and these nodes as words of bits, (n_class, n_word).

    The last class is always empty. Placements that take the first nodes need no classes.
    """
    n = len(free)
    classes = 0 if placed.prefers in ("first", "consecutive") else int(free.max()) + 2
    with_cores, bits = blank(classes), np.zeros((classes, -(-n // WORD)), dtype=np.int64)
    if classes:
        np.add.at(with_cores, free, 1)
        np.add.at(bits, (free, np.arange(n) // WORD), 1 << (np.arange(n) % WORD))
        with_cores = np.ascontiguousarray(np.cumsum(with_cores[::-1])[::-1])
        bits = np.ascontiguousarray(np.bitwise_or.accumulate(bits[::-1])[::-1])
    return with_cores, bits


def separate_nodes(nodes: NodeArrays) -> NodeArrays:
    """Return a copy of the nodes whose free capacity can change separately."""
    return nodes._replace(
        **{name: getattr(nodes, name).copy() for name in ("top", "pool", "with_cores", "bits", "chosen", "borrow")}
    )


def as_words(nodes: BoolArray) -> IntArray:
    """Return sets of nodes, (..., n_node), as words of bits, (..., n_word)."""
    n = nodes.shape[-1]
    bits: IntArray = np.where(nodes, 1 << np.arange(n) % WORD, 0)
    return np.bitwise_or.reduceat(bits, np.arange(0, n, WORD), axis=-1)


def never_nodes(nodes: NodeArrays, grouped: JobKinds) -> tuple[IntArray, IntArray]:
    """Return the nodes that each class of kinds can never use, (n_class, n_word), and the class of each kind, (n_kind,).

    These nodes have too few cores, too little memory, or are outside the class's set of nodes. `nodes` must be empty.
    """
    possible, class_of = _possible_nodes(nodes, grouped, MEMORY + 1)
    return as_words(~possible), class_of


def able_nodes(nodes: NodeArrays, grouped: JobKinds) -> tuple[IntArray, IntArray]:
    """Return the nodes that can hold a part of each class if nothing runs, (n_class, n_word), and the class of each kind."""
    possible, class_of = _possible_nodes(nodes, grouped, grouped.request.shape[1])
    return as_words(possible), class_of


def _possible_nodes(nodes: NodeArrays, grouped: JobKinds, amounts: int) -> tuple[BoolArray, IntArray]:
    """Return the nodes with enough of the first `amounts` for each class, (n_class, n_node), and the class of each kind."""
    n, leaves = len(nodes.owner), len(nodes.top) // 2
    sizes, size_of = np.unique(nodes.top[leaves : leaves + n, :amounts], axis=0, return_inverse=True)
    fits = (grouped.request[:, None, :amounts] <= sizes).all(axis=2)
    columns: IntArray = np.column_stack([grouped.eligible, fits])
    classes, class_of = np.unique(columns, axis=0, return_inverse=True)
    possible = nodes.open[classes[:, 0], leaves : leaves + n] & (classes[:, 1:] > 0)[:, size_of]
    return possible, class_of.astype(np.int64)
