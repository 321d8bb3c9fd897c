"""Cache of the kinds of jobs that fit now, and of the first fitting node for jobs of one part.

If a kind did not fit, only nodes with released capacity can change that. Only such nodes can precede its first fitting node.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import borrows, choose, missing_nodes
from poolwise.kernels.shared_nodes.nodes import holds_part, next_fit
from poolwise.kernels.shared_nodes.state import FIRST_FIT, KindArrays, NodeArrays, SharedState


@step
def finds_room(kind: int, state: SharedState) -> bool:
    """Return whether a job of a kind fits now; cached until capacity is allocated or released."""
    kinds, nodes, now = state.kinds, state.nodes, state.now
    if kinds.fits_at[kind] != now.version:
        kinds.fits_at[kind] = now.version
        is_cached = kinds.short[kind] > 0 or kinds.first_node[kind] >= 0
        if not is_cached or now.released - kinds.short_at[kind] > nodes.released.size or borrows(kind, kinds, nodes):
            _search_all(kind, kinds, nodes)
        elif kinds.parts[kind] == 1:
            _update_first_node(kind, state)
        elif not _still_short(kind, state):
            _search_all(kind, kinds, nodes)
        kinds.fits[kind], kinds.short_at[kind] = kinds.short[kind] == 0, now.released
    return bool(kinds.fits[kind])


@inlined
def _search_all(kind: int, kinds: KindArrays, nodes: NodeArrays) -> None:
    """Search all nodes."""
    kinds.short[kind], kinds.first_node[kind] = missing_nodes(kind, kinds, nodes), -1
    if kinds.short[kind] == 0 and kinds.parts[kind] == 1 and not borrows(kind, kinds, nodes):
        kinds.first_node[kind] = nodes.chosen[0]


@inlined
def _still_short(kind: int, state: SharedState) -> bool:
    """Return whether a kind that did not fit still does not, because too few nodes have released enough for a part."""
    kinds, nodes = state.kinds, state.nodes
    for k in range(kinds.short_at[kind], state.now.released):
        kinds.short[kind] -= int(holds_part(nodes.released[k % nodes.released.size], kind, kinds, nodes))
        if kinds.short[kind] == 0:
            return False
    return True


@inlined
def _update_first_node(kind: int, state: SharedState) -> None:
    """Find the first node that holds a job of one part: the cached one, one with released capacity, or a later one."""
    kinds, nodes = state.kinds, state.nodes
    first_node = kinds.first_node[kind]
    if first_node >= 0 and not holds_part(first_node, kind, kinds, nodes):
        first_node = next_fit(first_node + 1, kind, -1, kinds, nodes)
    for k in range(kinds.short_at[kind], state.now.released):
        n = nodes.released[k % nodes.released.size]
        if (first_node < 0 or n < first_node) and holds_part(n, kind, kinds, nodes):
            first_node = n
    kinds.first_node[kind], kinds.short[kind] = first_node, int(first_node < 0)


@inlined
def place(kind: int, state: SharedState) -> None:
    """Find nodes for all parts of a job that fits, as `choose` does."""
    rules, kinds, nodes = state.rules, state.kinds, state.nodes
    if rules.placement == FIRST_FIT and kinds.first_node[kind] >= 0:
        nodes.chosen[0], nodes.borrow[0] = kinds.first_node[kind], 0
    else:
        choose(kind, rules, kinds, nodes)
