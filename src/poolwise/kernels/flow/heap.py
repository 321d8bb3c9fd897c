"""A binary heap of nodes by distance that knows the position of each, so that the distance of a node can decrease."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step


@step
def rise(heap: IntArray, place: IntArray, node: int, k: int, distance: IntArray) -> None:
    """Put a node at position k or above."""
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
    """Take the nearest of `size` nodes; the caller counts down."""
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
