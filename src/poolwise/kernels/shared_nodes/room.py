"""Cache of the kinds of jobs that fit now, and of the first fitting node for jobs of one part.

If a kind did not fit, only nodes with released capacity can change that; the same holds for nodes before its first fitting one.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import borrows, choose, missing_nodes
from poolwise.kernels.shared_nodes.nodes import holds_part, next_fit
from poolwise.kernels.shared_nodes.state import FIRST_FIT, RELEASED, STATE, KindArrays, NodeArrays, SharedRules


@step
def finds_room(kind: int, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Return whether a job of a kind fits now; cached until capacity is allocated or released."""
    if kinds.fits_at[kind] != now[STATE]:
        kinds.fits_at[kind] = now[STATE]
        known = kinds.short[kind] > 0 or kinds.first_node[kind] >= 0
        if not known or now[RELEASED] - kinds.short_at[kind] > nodes.released.size or borrows(kind, kinds, nodes):
            _search_all(kind, kinds, nodes)
        elif kinds.parts[kind] == 1:
            _update_first_node(kind, kinds, nodes, now)
        elif not _still_short(kind, kinds, nodes, now):
            _search_all(kind, kinds, nodes)
        kinds.fits[kind], kinds.short_at[kind] = kinds.short[kind] == 0, now[RELEASED]
    return bool(kinds.fits[kind])


@inlined
def _search_all(kind: int, kinds: KindArrays, nodes: NodeArrays) -> None:
    """Search all nodes."""
    kinds.short[kind], kinds.first_node[kind] = missing_nodes(kind, kinds, nodes), -1
    if kinds.short[kind] == 0 and kinds.parts[kind] == 1 and not borrows(kind, kinds, nodes):
        kinds.first_node[kind] = nodes.chosen[0]


@inlined
def _still_short(kind: int, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Return whether a kind that did not fit still does not, since too few nodes released what a part needs."""
    for k in range(kinds.short_at[kind], now[RELEASED]):
        kinds.short[kind] -= int(holds_part(nodes.released[k % nodes.released.size], kind, kinds, nodes))
        if kinds.short[kind] == 0:
            return False
    return True


@inlined
def _update_first_node(kind: int, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> None:
    """Find the first node that holds a job of one part: the cached one, one with released capacity, or a later one."""
    first_node = kinds.first_node[kind]
    if first_node >= 0 and not holds_part(first_node, kind, kinds, nodes):
        first_node = next_fit(first_node + 1, kind, -1, kinds, nodes)
    for k in range(kinds.short_at[kind], now[RELEASED]):
        n = nodes.released[k % nodes.released.size]
        if (first_node < 0 or n < first_node) and holds_part(n, kind, kinds, nodes):
            first_node = n
    kinds.first_node[kind], kinds.short[kind] = first_node, int(first_node < 0)


@inlined
def place(kind: int, rules: SharedRules, kinds: KindArrays, nodes: NodeArrays) -> None:
    """Find nodes for all parts of a job that fits, as `choose` does."""
    if rules.placement == FIRST_FIT and kinds.first_node[kind] >= 0:
        nodes.chosen[0], nodes.borrow[0] = kinds.first_node[kind], 0
    else:
        choose(kind, rules, kinds, nodes)
