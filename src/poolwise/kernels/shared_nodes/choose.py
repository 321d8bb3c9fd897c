"""Choice of nodes for the parts of a job: equals `policies.placement.nodes`, node by node.

Nodes that need no pool memory are chosen first, in the order of the placement. If there are too few, all nodes are ordered by
the memory that they would borrow; Slurm's placements have no kernel in this case.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.nodes import next_fit, next_with_cores
from poolwise.kernels.shared_nodes.state import (
    BEST_FIT,
    CONSECUTIVE,
    CORES,
    FIRST_FIT,
    MEMORY,
    PACKED,
    TREE,
    WORST_FIT,
    KindArrays,
    NodeArrays,
    SharedRules,
)


@step
def choose(kind: int, rules: SharedRules, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Find nodes for all parts of a job (`nodes.chosen`, `nodes.borrow`); return False if it does not fit."""
    if rules.placement == FIRST_FIT:
        fits = _first(kind, kinds, nodes) == kinds.parts[kind]
    elif rules.placement == PACKED or rules.placement == TREE:
        fits = _by_rack(kind, rules.placement == TREE, kinds, nodes)
    elif rules.placement == CONSECUTIVE:
        fits = _consecutive(kind, kinds, nodes)
    else:
        fits = _by_cores(kind, rules.placement == BEST_FIT, kinds, nodes)
    if fits:
        for part in range(kinds.parts[kind]):
            nodes.borrow[part] = 0
        return True
    return borrows(kind, kinds, nodes) and _choose_borrowing(kind, rules.placement, kinds, nodes)


@step
def missing_nodes(kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Return how many more nodes must be able to hold a part for a job to fit, 0 if it fits; the placement does not matter."""
    short = kinds.parts[kind] - _first(kind, kinds, nodes)
    if short > 0 and borrows(kind, kinds, nodes) and _choose_borrowing(kind, FIRST_FIT, kinds, nodes):
        return 0
    return int(short)


@inlined
def borrows(kind: int, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Return whether parts of a kind may borrow memory from pools."""
    return bool(nodes.pool.size > 0 and kinds.request[kind, MEMORY] > 0)


@inlined
def _first(kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Choose the first nodes that hold a part; return how many there are, at most the number of parts."""
    n = -1
    for part in range(kinds.parts[kind]):
        n = next_fit(n + 1, kind, -1, kinds, nodes)
        if n < 0:
            return part
        nodes.chosen[part] = n
    return int(kinds.parts[kind])


@step
def _by_cores(kind: int, ascending: bool, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Choose the nodes that hold a part with the fewest free cores, or with the most."""
    most, least = nodes.top[1, CORES], kinds.request[kind, CORES]
    part, wanted = 0, kinds.parts[kind]
    if least > most or nodes.with_cores[least] < wanted:
        return False
    for k in range(most - least + 1):
        cores = least + k if ascending else most - k
        n, left = -1, nodes.with_cores[cores] - nodes.with_cores[cores + 1]
        while left > 0:
            n = next_with_cores(cores, True, n + 1, nodes.rack.size, kind, kinds, nodes)
            if n < 0:
                break
            nodes.chosen[part] = n
            part += 1
            left -= 1
            if part == wanted:
                return True
    return False


@step
def _by_rack(kind: int, tree: bool, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Choose the rack with the fewest fitting nodes that suffice, else several racks, most fitting nodes first.

    With `tree`, the remaining parts go to the rack with the fewest nodes that suffice, as soon as there is one.
    """
    wanted = kinds.parts[kind]
    if kinds.request[kind, CORES] > nodes.top[1, CORES] or nodes.with_cores[kinds.request[kind, CORES]] < wanted:
        return False
    rack = _tightest_rack(kind, kinds, nodes)
    if rack >= 0:
        return bool(_fill(rack, 0, kind, kinds, nodes) == wanted)
    part, fitting = 0, 0
    for r in range(nodes.tally.size):
        fitting += nodes.tally[r]
    while fitting >= wanted and part < wanted:
        rack, left = 0, wanted - part
        for r in range(1, nodes.tally.size):
            here, best = nodes.tally[r], nodes.tally[rack]
            if left <= here < best if tree and best >= left else here > best:
                rack = r
        part = _fill(rack, part, kind, kinds, nodes)
        nodes.tally[rack] = 0
    return bool(part == wanted)


@inlined
def _tightest_rack(kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Return the rack with the fewest fitting nodes of those that hold all parts, -1 if none; `tally` then has the counts.

    Counting stops early in racks with more fitting nodes than the best so far, or than the rack chosen last time.
    """
    wanted, best, least = kinds.parts[kind], -1, nodes.rack.size
    fitting = _count_fitting(nodes.last_rack[0], least, kind, kinds, nodes)
    if fitting >= wanted:
        least = fitting
    for r in range(nodes.tally.size):
        fitting = _count_fitting(r, least, kind, kinds, nodes)
        nodes.tally[r] = fitting
        if fitting >= wanted and fitting <= least and (best < 0 or fitting < least):
            best, least = r, fitting
            if fitting == wanted:
                break
    if best >= 0:
        nodes.last_rack[0] = best
    return best


@step
def _count_fitting(rack: int, most: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Count the nodes of a rack that hold a part; stop at `most` + 1."""
    cores, end, fitting = kinds.request[kind, CORES], nodes.first[rack + 1], 0
    n = next_with_cores(cores, False, nodes.first[rack], end, kind, kinds, nodes)
    while n >= 0 and fitting <= most:
        fitting += 1
        n = next_with_cores(cores, False, n + 1, end, kind, kinds, nodes)
    return fitting


@inlined
def _fill(rack: int, part: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Assign parts from `part` on to the first fitting nodes of a rack; return the next part."""
    cores, end = kinds.request[kind, CORES], nodes.first[rack + 1]
    n = next_with_cores(cores, False, nodes.first[rack], end, kind, kinds, nodes)
    while part < kinds.parts[kind] and n >= 0:
        nodes.chosen[part] = n
        part += 1
        n = next_with_cores(cores, False, n + 1, end, kind, kinds, nodes)
    return part


@step
def _consecutive(kind: int, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Choose sequences of consecutive nodes that hold a part, as `placement.ConsecutiveNodes` does; low weights first."""
    line, number, wanted, fitting = nodes.line, nodes.number, kinds.parts[kind], 0
    n = next_fit(0, kind, -1, kinds, nodes)
    while n >= 0:
        line[fitting] = n
        fitting += 1
        n = next_fit(n + 1, kind, -1, kinds, nodes)
    if fitting < wanted:
        return False
    part, first, span = 0, 0, number.size + 1
    while part < wanted:
        weight, behind = number[line[first]] // span, first
        while behind < fitting and number[line[behind]] // span == weight:
            behind += 1
        part = _use_sequences(first, behind, part, kind, kinds, nodes)
        first = behind
    return True


@inlined
def _use_sequences(first: int, behind: int, part: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Assign parts from `part` on to sequences of the nodes `line[first:behind]`; return the next part."""
    line, wanted = nodes.line, kinds.parts[kind]
    while part < wanted:
        k = _next_sequence(first, behind, wanted - part, kind, kinds, nodes)
        if k < 0:
            return part
        end = _end_of_sequence(k, behind, nodes)
        if wanted - part == 1:
            best = k
            for other in range(k + 1, end):
                if _counted_cores(line[other], kind, kinds, nodes) < _counted_cores(line[best], kind, kinds, nodes):
                    best = other
            nodes.chosen[part] = line[best]
            return part + 1
        for used in range(k, end):
            if part < wanted:
                nodes.chosen[part] = line[used]
                part += 1
            line[used] = -1
    return part


@step
def _next_sequence(first: int, behind: int, left: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Return where in `line[first:behind]` the next sequence for the remaining parts begins, -1 if none is left."""
    best, best_cores, sufficient, k = -1, 0, False, first
    while k < behind:
        if nodes.line[k] < 0:
            k += 1
            continue
        end, cores = _end_of_sequence(k, behind, nodes), 0
        for at in range(k, end):
            cores += _counted_cores(nodes.line[at], kind, kinds, nodes)
        enough = end - k >= left
        better = cores < best_cores or not sufficient if enough else cores > best_cores
        if best < 0 or better:
            best, best_cores, sufficient = k, cores, enough
        k = end
    return best


@inlined
def _end_of_sequence(k: int, behind: int, nodes: NodeArrays) -> int:
    """Return where the sequence that begins at a position of `line` ends, at most `behind`."""
    line, number = nodes.line, nodes.number
    k += 1
    while k < behind and line[k] >= 0 and number[line[k]] == number[line[k - 1]] + 1:
        k += 1
    return k


@inlined
def _counted_cores(n: int, kind: int, kinds: KindArrays, nodes: NodeArrays) -> int:
    """Return the free cores of a node, or the cores that a part requests if it also requests other countable resources."""
    return int(kinds.request[kind, CORES] if kinds.more[kind] else nodes.top[nodes.top.shape[0] // 2 + n, CORES])


@step
def _choose_borrowing(kind: int, placement: int, kinds: KindArrays, nodes: NodeArrays) -> bool:
    """Choose nodes by the memory they borrow, then as the placement orders them; skip nodes whose pool has too little left."""
    wanted, memory = kinds.parts[kind], kinds.request[kind, MEMORY]
    line, leaves, fitting = nodes.line, nodes.top.shape[0] // 2, 0
    n = next_fit(0, kind, MEMORY, kinds, nodes)
    while n >= 0:
        borrow = max(memory - nodes.top[leaves + n, MEMORY], 0)
        if borrow == 0 or (nodes.pool_of[n] >= 0 and borrow <= nodes.pool[nodes.pool_of[n]]):
            line[fitting] = n
            nodes.key[n] = borrow
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
        borrow = max(memory - nodes.top[leaves + n, MEMORY], 0)
        if borrow > 0:
            if borrow > nodes.pool[nodes.pool_of[n]]:
                continue
            nodes.pool[nodes.pool_of[n]] -= borrow
        nodes.chosen[part], nodes.borrow[part] = n, borrow
        part += 1
    for k in range(part):  # undo the temporary allocations
        if nodes.borrow[k] > 0:
            nodes.pool[nodes.pool_of[nodes.chosen[k]]] += nodes.borrow[k]
    return bool(part == wanted)


@inlined
def _rank(kind: int, placement: int, fitting: int, kinds: KindArrays, nodes: NodeArrays) -> None:
    """Combine the memory that the first `fitting` nodes of `line` borrow, in `key`, with their order among equals."""
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
    """Rank the racks by their numbers of nodes that borrow least; write -1 - rank of each rack to `tally`."""
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
    """Return the next rack of those without a rank: the fewest fitting nodes that suffice, else the most."""
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
