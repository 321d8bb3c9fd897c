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
    """Links between vertices; owners are attached to vertices. Links are owners too, so contention finds them by index.

    Attributes
    ----------
    vertex : (n_owner,) vertex that each owner is attached to, -1 if it is not on the network
    link : (n_link,) owner number of each link
    ends : (n_link, 2) the two vertices that a link joins; links carry traffic both ways over one capacity
    latency : (n_link,) ns
    """

    vertex: IntArray
    link: IntArray
    ends: IntArray
    latency: IntArray

    def __post_init__(self) -> None:
        for array in (self.vertex, self.link, self.ends, self.latency):
            frozen(array)

    @cached_property
    def _neighbours(self) -> dict[int, list[tuple[int, int]]]:
        found: dict[int, list[tuple[int, int]]] = {}
        for k, (a, b) in enumerate(self.ends.tolist()):
            found.setdefault(a, []).append((k, b))
            found.setdefault(b, []).append((k, a))
        return found

    @cached_property
    def _paths(self) -> dict[tuple[int, int], tuple[int, ...]]:
        return {}

    def path(self, here: int, there: int) -> tuple[int, ...]:
        """Links (positions 0..n_link-1) from one owner to another: fewest hops, ties by the lowest link.

        Empty when both are attached to the same vertex. Raises InputError if there is no way.
        """
        a, b = int(self.vertex[here]), int(self.vertex[there])
        if a == b:
            return ()
        found = self._paths.get((a, b))
        if found is None:
            found = self._paths[a, b] = self._search(a, b, (here, there))
        return found

    def _search(self, a: int, b: int, owners: tuple[int, int]) -> tuple[int, ...]:
        came: dict[int, tuple[int, int]] = {a: (-1, -1)}
        front = deque([a])
        while front and b not in came:
            at = front.popleft()
            for k, to in self._neighbours.get(at, ()):
                if to not in came:
                    came[to] = (at, k)
                    front.append(to)
        if b not in came or a < 0 or b < 0:
            raise InputError(
                f"no path between owners {owners[0]} and {owners[1]}",
                field="link",
                remedy="add a [[link]] that joins them",
            )
        links: list[int] = []
        at = b
        while at != a:
            at, k = came[at]
            links.append(k)
        return tuple(reversed(links))

    def connected(self, owner: int) -> tuple[int, ...]:
        """Links (positions) of the connected network that an owner is attached to, ascending."""
        start = int(self.vertex[owner])
        found = self._components.get(start)
        if found is None:
            links: set[int] = set()
            seen, front = {start}, deque([start])
            while front:
                for k, to in self._neighbours.get(front.popleft(), ()):
                    links.add(k)
                    if to not in seen:
                        seen.add(to)
                        front.append(to)
            found = tuple(sorted(links))
            self._components.update(dict.fromkeys(seen, found))
        return found

    @cached_property
    def _components(self) -> dict[int, tuple[int, ...]]:
        return {}

    def bottleneck(self, links: Sequence[int], amounts: IntArray) -> int:
        """Least of the (n_owner,) `amounts` among the links of a path, which must not be empty."""
        return min(int(amounts[self.link[k]]) for k in links)

    def link_owners(self, links: Sequence[int]) -> tuple[int, ...]:
        """Owner numbers of links."""
        return tuple(int(self.link[k]) for k in links)

    def path_latency(self, links: Sequence[int]) -> int:
        """Nanoseconds that a path's links add up to."""
        return sum(int(self.latency[k]) for k in links)
