"""Which nodes the parts of a job take: the same as `policies.placement.nodes`, node by node.

Nodes that need nothing from a pool go first, by first, best or worst fit or packed by rack. Only where they are too few,
all nodes are ordered by what they lack.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.shared_nodes.nodes import next_fit, next_having
from poolwise.kernels.shared_nodes.state import (
    BEST_FIT,
    CORES,
    FIRST_FIT,
    MEMORY,
    PACKED,
    WORST_FIT,
    KindArrays,
    NodeArrays,
    SharedRules,
)


@step
def choose(kind: int, rules: SharedRules, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Find nodes for all parts of a job (`nodes.chosen`, `nodes.lack`); False if there is no room."""
    if rules.placement == FIRST_FIT:
        found = _first(kind, kinds, nodes) == kinds.parts[kind]
    elif rules.placement == PACKED:
        found = _packed(kind, kinds, nodes)
    else:
        found = _by_cores(kind, rules.placement == BEST_FIT, kinds, nodes)
    if found:
        for part in range(kinds.parts[kind]):
            nodes.lack[part] = 0
        return True
    return borrows(kind, kinds, nodes) and _borrowing(kind, rules.placement, kinds, nodes)


@step
def missing(kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """How many nodes more would have to hold a part of a job for it to find room, 0 if it does: the same for each placement."""
    short = kinds.parts[kind] - _first(kind, kinds, nodes)
    if short > 0 and borrows(kind, kinds, nodes) and _borrowing(kind, FIRST_FIT, kinds, nodes):
        return 0
    return int(short)


@inlined
def borrows(kind: int, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Whether parts of a kind may take memory of pools."""
    return bool(nodes.pool.size > 0 and kinds.ask[kind, MEMORY] > 0)


@inlined
def _first(kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """The first nodes that hold a part; returns how many there are, at most as many as there are parts."""
    n = -1
    for part in range(kinds.parts[kind]):
        n = next_fit(n + 1, kind, -1, kinds, nodes)
        if n < 0:
            return part
        nodes.chosen[part] = n
    return int(kinds.parts[kind])


@step
def _by_cores(kind: int, ascending: bool, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """The nodes that hold a part with the fewest free cores, or with the most."""
    most, least = nodes.top[1, CORES], kinds.ask[kind, CORES]
    part, wanted = 0, kinds.parts[kind]
    if least > most or nodes.having[least] < wanted:
        return False
    for k in range(most - least + 1):
        cores = least + k if ascending else most - k
        n, left = -1, nodes.having[cores] - nodes.having[cores + 1]
        while left > 0:
            n = next_having(cores, True, n + 1, nodes.rack.size, kind, kinds, nodes)
            if n < 0:
                break
            nodes.chosen[part] = n
            part += 1
            left -= 1
            if part == wanted:
                return True
    return False


@step
def _packed(kind: int, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """All parts in the rack with the fewest fitting nodes that suffice, else in racks with most fitting nodes first."""
    wanted = kinds.parts[kind]
    if kinds.ask[kind, CORES] > nodes.top[1, CORES] or nodes.having[kinds.ask[kind, CORES]] < wanted:
        return False
    rack = _rack_of_all(kind, kinds, nodes)
    if rack >= 0:
        return bool(_fill(rack, 0, kind, kinds, nodes) == wanted)
    part, fitting = 0, 0
    for r in range(nodes.tally.size):
        fitting += nodes.tally[r]
    while fitting >= wanted and part < wanted:
        rack = 0
        for r in range(1, nodes.tally.size):
            if nodes.tally[r] > nodes.tally[rack]:
                rack = r
        part = _fill(rack, part, kind, kinds, nodes)
        nodes.tally[rack] = 0
    return bool(part == wanted)


@inlined
def _rack_of_all(kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """The rack with the fewest fitting nodes of those that hold all parts, -1 if none does; then `tally` tells how many fit.

    A rack that has more than the best so far, or than the one that was the best last time, is not counted to its end.
    """
    wanted, best, least = kinds.parts[kind], -1, nodes.rack.size
    fitting = _fitting(nodes.likely[0], least, kind, kinds, nodes)
    if fitting >= wanted:
        least = fitting
    for r in range(nodes.tally.size):
        fitting = _fitting(r, least, kind, kinds, nodes)
        nodes.tally[r] = fitting
        if fitting >= wanted and fitting <= least and (best < 0 or fitting < least):
            best, least = r, fitting
            if fitting == wanted:
                break
    if best >= 0:
        nodes.likely[0] = best
    return best


@step
def _fitting(rack: int, most: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Nodes of a rack that hold a part; where they are more than `most`, one more than that."""
    cores, end, fitting = kinds.ask[kind, CORES], nodes.first[rack + 1], 0
    n = next_having(cores, False, nodes.first[rack], end, kind, kinds, nodes)
    while n >= 0 and fitting <= most:
        fitting += 1
        n = next_having(cores, False, n + 1, end, kind, kinds, nodes)
    return fitting


@inlined
def _fill(rack: int, part: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Let parts from `part` on take the first fitting nodes of a rack; returns the next part."""
    cores, end = kinds.ask[kind, CORES], nodes.first[rack + 1]
    n = next_having(cores, False, nodes.first[rack], end, kind, kinds, nodes)
    while part < kinds.parts[kind] and n >= 0:
        nodes.chosen[part] = n
        part += 1
        n = next_having(cores, False, n + 1, end, kind, kinds, nodes)
    return part


@step
def _borrowing(kind: int, placement: int, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Nodes by what they lack of the memory, then as the placement has it; where the pool has too little, one is passed by."""
    wanted, memory = kinds.parts[kind], kinds.ask[kind, MEMORY]
    line, leaves, fitting = nodes.line, nodes.top.shape[0] // 2, 0
    n = next_fit(0, kind, MEMORY, kinds, nodes)
    while n >= 0:
        lack = max(memory - nodes.top[leaves + n, MEMORY], 0)
        if lack == 0 or (nodes.pool_of[n] >= 0 and lack <= nodes.pool[nodes.pool_of[n]]):
            line[fitting] = n
            nodes.key[n] = lack
            fitting += 1
        n = next_fit(n + 1, kind, MEMORY, kinds, nodes)
    if fitting < wanted:
        return False
    _rank(kind, placement, fitting, kinds, nodes)
    heap.arrange(line, fitting, nodes.key)
    part = 0
    while fitting > 0 and part < wanted:
        n = heap.pop(line, fitting, nodes.key)
        fitting -= 1
        lack = max(memory - nodes.top[leaves + n, MEMORY], 0)
        if lack > 0:
            if lack > nodes.pool[nodes.pool_of[n]]:
                continue
            nodes.pool[nodes.pool_of[n]] -= lack
        nodes.chosen[part], nodes.lack[part] = n, lack
        part += 1
    for k in range(part):  # what was held while counting is given back
        if nodes.lack[k] > 0:
            nodes.pool[nodes.pool_of[nodes.chosen[k]]] += nodes.lack[k]
    return bool(part == wanted)


@inlined
def _rank(kind: int, placement: int, fitting: int, kinds: KindArrays, nodes: NodeArrays) -> None:
    """Turn what the first `fitting` nodes of `line` lack, in `key`, into keys that also count the turn of equal ones."""
    line, leaves, key = nodes.line, nodes.top.shape[0] // 2, nodes.key
    most = nodes.top[1, CORES]
    if placement == PACKED:
        _rank_racks(kinds.parts[kind], fitting, nodes)
        most = nodes.tally.size
    for k in range(fitting):
        n, turn = line[k], 0
        if placement == BEST_FIT:
            turn = nodes.top[leaves + n, CORES]
        elif placement == WORST_FIT:
            turn = most - nodes.top[leaves + n, CORES]
        elif placement == PACKED:
            turn = -1 - nodes.tally[nodes.rack[n]]
        key[n] = key[n] * (most + 1) + turn


@step
def _rank_racks(wanted: int, fitting: int, nodes: NodeArrays) -> None:
    """Write -1 - rank of each rack into `tally`, by its nodes among those that lack least, as many as there are parts."""
    line, key, chosen = nodes.line, nodes.key, nodes.chosen
    for k in range(fitting):
        chosen[k] = line[k]
    heap.arrange(chosen, fitting, key)
    enough = 0
    for k in range(wanted):
        enough = key[heap.pop(chosen, fitting - k, key)]
    for r in range(nodes.tally.size):
        nodes.tally[r] = 0
    for k in range(fitting):
        if key[line[k]] <= enough:
            nodes.tally[nodes.rack[line[k]]] += 1
    for rank in range(nodes.tally.size):
        nodes.tally[_next_unranked(wanted, nodes)] = -1 - rank


@inlined
def _next_unranked(wanted: int, nodes: NodeArrays) -> int:
    """As `next_rack`, of racks that have no rank yet."""
    best = -1
    for r in range(nodes.tally.size):
        here = nodes.tally[r]
        if here < 0:
            continue
        there = nodes.tally[best] if best >= 0 else -1
        if best < 0 or (here >= wanted) != (there >= wanted):
            better = best < 0 or here >= wanted
        else:
            better = here < there if here >= wanted else here > there
        if better:
            best = r
    return best
