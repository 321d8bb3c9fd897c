"""Binary min-heap of items ordered by (key[item], item)."""

from __future__ import annotations

from poolwise.arrays import FloatArray, IntArray
from poolwise.kernels.jit import step


@step
def before(a: int, b: int, key: IntArray | FloatArray) -> bool:
    """Return whether item a comes before item b."""
    return key[a] < key[b] or (key[a] == key[b] and a < b)


@step
def push(heap: IntArray, size: int, item: int, key: IntArray | FloatArray) -> None:
    """Add an item to a heap of `size` items."""
    k = size
    while k > 0:
        parent = (k - 1) >> 1
        if not before(item, heap[parent], key):
            break
        heap[k] = heap[parent]
        k = parent
    heap[k] = item


@step
def sink(heap: IntArray, size: int, k: int, key: IntArray | FloatArray) -> None:
    """Sift the item at position k down."""
    item = heap[k]
    child = 2 * k + 1
    while child < size:
        if child + 1 < size and before(heap[child + 1], heap[child], key):
            child += 1
        if not before(heap[child], item, key):
            break
        heap[k] = heap[child]
        k = child
        child = 2 * k + 1
    heap[k] = item


@step
def pop(heap: IntArray, size: int, key: IntArray | FloatArray) -> int:
    """Remove and return the first of `size` items; the caller decrements the size."""
    first = heap[0]
    heap[0] = heap[size - 1]
    sink(heap, size - 1, 0, key)
    return int(first)


@step
def arrange(heap: IntArray, size: int, key: IntArray | FloatArray) -> None:
    """Turn the first `size` items into a heap."""
    for k in range(size // 2 - 1, -1, -1):
        sink(heap, size, k, key)


@step
def sort(items: IntArray, size: int, key: IntArray | FloatArray) -> None:
    """Sort the first `size` items, smallest first."""
    arrange(items, size, key)
    for k in range(size - 1, -1, -1):
        items[k] = pop(items, k + 1, key)
    for k in range(size // 2):  # heap sort yields descending order
        items[k], items[size - 1 - k] = items[size - 1 - k], items[k]


@step
def select(items: IntArray, size: int, count: int, key: IntArray | FloatArray) -> None:
    """Move the smallest `count` of `size` items to the front, in any order.

    This is Hoare's quickselect around the median of three items. No two items compare equal, so no part is empty.
    """
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) >> 1
        for a, b in ((low, middle), (middle, high), (low, middle)):
            if before(items[b], items[a], key):
                items[a], items[b] = items[b], items[a]
        pivot, left, right = items[middle], low, high
        while left <= right:
            while before(items[left], pivot, key):
                left += 1
            while before(pivot, items[right], key):
                right -= 1
            if left <= right:
                items[left], items[right] = items[right], items[left]
                left += 1
                right -= 1
        if count - 1 <= right:
            high = right
        elif count - 1 >= left:
            low = left
        else:
            return
