"""The network between owners: links, and the path between two owners."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from poolwise.arrays import IntArray, frozen
from poolwise.errors import InputError


@dataclass(frozen=True, eq=False)
class Fabric:
    """Links between vertices, and the vertex of each owner. Links are owners too, so that models can refer to them by number.

    Attributes
    ----------
    vertex : (n_owner,) vertex of each owner, -1 if it is not on the network
    link : (n_link,) owner number of each link
    ends : (n_link, 2) the two vertices that a link joins; links carry traffic both ways over one capacity
    latency : (n_link,) latency of each link, ns
    """

    vertex: IntArray
    link: IntArray
    ends: IntArray
    latency: IntArray

    def __post_init__(self) -> None:
        for array in (self.vertex, self.link, self.ends, self.latency):
            frozen(array)

    @cached_property
    def _neighbors(self) -> dict[int, list[tuple[int, int]]]:
        neighbors: dict[int, list[tuple[int, int]]] = {}
        for k, (a, b) in enumerate(self.ends.tolist()):
            neighbors.setdefault(a, []).append((k, b))
            neighbors.setdefault(b, []).append((k, a))
        return neighbors

    @cached_property
    def _paths(self) -> dict[tuple[int, int], tuple[int, ...]]:
        return {}

    def path(self, here: int, there: int) -> tuple[int, ...]:
        """Return the path with the fewest hops from one owner to another, as positions of links; ties go to the lowest link.

        The path is empty if both owners are at the same vertex. Raises InputError if there is no path.
        """
        a, b = int(self.vertex[here]), int(self.vertex[there])
        if a == b:
            return ()
        links = self._paths.get((a, b))
        if links is None:
            links = self._paths[a, b] = self._search(a, b, (here, there))
        return links

    def _search(self, a: int, b: int, owners: tuple[int, int]) -> tuple[int, ...]:
        reached_by: dict[int, tuple[int, int]] = {a: (-1, -1)}
        front = deque([a])
        while front and b not in reached_by:
            at = front.popleft()
            for k, to in self._neighbors.get(at, ()):
                if to not in reached_by:
                    reached_by[to] = (at, k)
                    front.append(to)
        if b not in reached_by or a < 0 or b < 0:
            raise InputError(
                f"no path between owners {owners[0]} and {owners[1]}",
                field="link",
                remedy="add a [[link]] that joins them",
            )
        links: list[int] = []
        at = b
        while at != a:
            at, k = reached_by[at]
            links.append(k)
        return tuple(reversed(links))

    def connected(self, owner: int) -> tuple[int, ...]:
        """Return the links (positions) of the connected part of the network that contains an owner, ascending."""
        start = int(self.vertex[owner])
        component = self._components.get(start)
        if component is None:
            links: set[int] = set()
            seen, front = {start}, deque([start])
            while front:
                for k, to in self._neighbors.get(front.popleft(), ()):
                    links.add(k)
                    if to not in seen:
                        seen.add(to)
                        front.append(to)
            component = tuple(sorted(links))
            self._components.update(dict.fromkeys(seen, component))
        return component

    @cached_property
    def _components(self) -> dict[int, tuple[int, ...]]:
        return {}

    def bottleneck(self, links: Sequence[int], amounts: IntArray) -> int:
        """Return the smallest of the (n_owner,) `amounts` over the links of a path, which must not be empty."""
        return min(int(amounts[self.link[k]]) for k in links)

    def link_owners(self, links: Sequence[int]) -> tuple[int, ...]:
        """Return the owner numbers of links."""
        return tuple(int(self.link[k]) for k in links)

    def path_latency(self, links: Sequence[int]) -> int:
        """Return the sum of the latencies of a path's links, ns."""
        return sum(int(self.latency[k]) for k in links)
