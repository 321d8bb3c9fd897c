"""Binary heap of nodes by distance that stores the position of each node, so that its distance can be decreased."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step


@step
def sift_up(heap: IntArray, place: IntArray, node: int, k: int, distance: IntArray) -> None:
    """Sift a node up from position k."""
    while k > 0:
        parent = (k - 1) >> 1
        other = heap[parent]
        if distance[other] <= distance[node]:
            break
        heap[k] = other
        place[other] = k
        k = parent
    heap[k] = node
    place[node] = k


@step
def pop(heap: IntArray, place: IntArray, size: int, distance: IntArray) -> int:
    """Remove and return the nearest of `size` nodes; the caller decrements the size."""
    nearest = int(heap[0])
    place[nearest] = -1
    size -= 1
    node = heap[size]
    k, child = 0, 1
    while child < size:
        if child + 1 < size and distance[heap[child + 1]] < distance[heap[child]]:
            child += 1
        if distance[heap[child]] >= distance[node]:
            break
        heap[k] = heap[child]
        place[heap[k]] = k
        k = child
        child = 2 * k + 1
    if size > 0:
        heap[k] = node
        place[node] = k
    return nearest
