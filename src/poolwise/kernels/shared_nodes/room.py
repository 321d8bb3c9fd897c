"""Whether jobs of a kind find room now, and where those of one part find it first: what was found is kept as far as it holds.

Room that a kind did not find comes from nodes alone that are given something back, and so do places before its first one.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import borrows, choose, missing
from poolwise.kernels.shared_nodes.nodes import holds_part, next_fit
from poolwise.kernels.shared_nodes.state import FIRST_FIT, GIVEN, STATE, KindArrays, NodeArrays, SharedRules


@step
def finds_room(kind: int, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Whether a job of a kind fits now; the answer is kept until something is taken or given back."""
    if kinds.fits_at[kind] != now[STATE]:
        kinds.fits_at[kind] = now[STATE]
        asked = kinds.short[kind] > 0 or kinds.spot[kind] >= 0
        if not asked or now[GIVEN] - kinds.short_at[kind] > nodes.given.size or borrows(kind, kinds, nodes):
            _look_through(kind, kinds, nodes)
        elif kinds.parts[kind] == 1:
            _move_spot(kind, kinds, nodes, now)
        elif not _is_short(kind, kinds, nodes, now):
            _look_through(kind, kinds, nodes)
        kinds.fits[kind], kinds.short_at[kind] = kinds.short[kind] == 0, now[GIVEN]
    return bool(kinds.fits[kind])


@inlined
def _look_through(kind: int, kinds: KindArrays, nodes: NodeArrays) -> None:
    """Look for room on all nodes."""
    kinds.short[kind], kinds.spot[kind] = missing(kind, kinds, nodes), -1
    if kinds.short[kind] == 0 and kinds.parts[kind] == 1 and not borrows(kind, kinds, nodes):
        kinds.spot[kind] = nodes.chosen[0]


@inlined
def _is_short(kind: int, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Whether a kind that found no room finds none still, since too few nodes have been given back what a part needs."""
    for k in range(kinds.short_at[kind], now[GIVEN]):
        kinds.short[kind] -= int(holds_part(nodes.given[k % nodes.given.size], kind, kinds, nodes))
        if kinds.short[kind] == 0:
            return False
    return True


@inlined
def _move_spot(kind: int, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> None:
    """Find the first node that holds a job of one part: the one known, one of those given something back, or one behind it."""
    spot = kinds.spot[kind]
    if spot >= 0 and not holds_part(spot, kind, kinds, nodes):
        spot = next_fit(spot + 1, kind, -1, kinds, nodes)
    for k in range(kinds.short_at[kind], now[GIVEN]):
        n = nodes.given[k % nodes.given.size]
        if (spot < 0 or n < spot) and holds_part(n, kind, kinds, nodes):
            spot = n
    kinds.spot[kind], kinds.short[kind] = spot, int(spot < 0)


@inlined
def place(kind: int, rules: SharedRules, kinds: KindArrays, nodes: NodeArrays) -> None:
    """Find nodes for all parts of a job that finds room, as `choose` does."""
    if rules.placement == FIRST_FIT and kinds.spot[kind] >= 0:
        nodes.chosen[0], nodes.lack[0] = kinds.spot[kind], 0
    else:
        choose(kind, rules, kinds, nodes)
