"""Segment trees over leaves: a set of leaves and a range minimum. Each operation takes O(log n) steps."""

from __future__ import annotations

from poolwise.quantities import NEVER


class BitTree:
    """Set of leaves with counts: `tree[1]` is the size of the set, and the children of node k are 2k and 2k + 1."""

    def __init__(self, size: int) -> None:
        self.base = 1 << max(size - 1, 0).bit_length()
        self.tree = [0] * (2 * self.base)

    def __contains__(self, leaf: int) -> bool:
        return self.tree[self.base + leaf] > 0

    def __len__(self) -> int:
        return self.tree[1]

    def set_leaf(self, leaf: int, there: bool) -> None:
        """Add a leaf or remove it."""
        k = self.base + leaf
        change = int(there) - self.tree[k]
        while change and k:
            self.tree[k] += change
            k >>= 1

    def before(self, leaf: int) -> int:
        """Return the number of set leaves below `leaf`."""
        k, count = self.base + leaf, 0
        if leaf == self.base:
            return self.tree[1]
        while k > 1:
            if k & 1:
                count += self.tree[k - 1]
            k >>= 1
        return count

    def count(self, low: int, high: int) -> int:
        """Return the number of set leaves from low to high (excluded)."""
        return self.before(high) - self.before(low)

    def at(self, number: int) -> int:
        """Return the set leaf at position `number` (from 0) among the set leaves."""
        k = 1
        while k < self.base:
            k *= 2
            if number >= self.tree[k]:
                number -= self.tree[k]
                k += 1
        return k - self.base

    def first(self, low: int, high: int) -> int:
        """Return the first set leaf from low to high (excluded), -1 if there is none."""
        below = self.before(low)
        if below >= self.tree[1]:
            return -1
        leaf = self.at(below)
        return leaf if leaf < high else -1


class MinTree:
    """Number per leaf with range minima; `NEVER` initially."""

    def __init__(self, size: int) -> None:
        self.base = 1 << max(size - 1, 0).bit_length()
        self.tree = [NEVER] * (2 * self.base)

    def __getitem__(self, leaf: int) -> int:
        return self.tree[self.base + leaf]

    @property
    def least(self) -> int:
        """Smallest number of any leaf."""
        return self.tree[1]

    def set_leaf(self, leaf: int, value: int) -> None:
        """Set the number of a leaf."""
        k = self.base + leaf
        self.tree[k] = value
        while k > 1:
            k >>= 1
            value = min(self.tree[2 * k], self.tree[2 * k + 1])
            if self.tree[k] == value:
                return
            self.tree[k] = value

    def first(self, low: int, high: int) -> tuple[int, int]:
        """Return (least number, first leaf with it) from low to high (excluded); (NEVER, -1) if all are `NEVER`."""
        best, where = NEVER, -1
        parts = []  # subtrees that cover the range, from the left
        right = []
        a, b = self.base + low, self.base + high
        while a < b:
            if a & 1:
                parts.append(a)
                a += 1
            if b & 1:
                b -= 1
                right.append(b)
            a >>= 1
            b >>= 1
        for k in (*parts, *reversed(right)):
            if self.tree[k] < best:
                best, where = self.tree[k], k
        if where < 0:
            return NEVER, -1
        while where < self.base:
            where *= 2
            where += self.tree[where] != best
        return best, where - self.base
