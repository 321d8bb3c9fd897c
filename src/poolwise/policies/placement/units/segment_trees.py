"""Binary trees over a row of leaves: which are set, and which holds the least. Each answer takes log2(leaves) steps."""

from __future__ import annotations

from poolwise.units import NEVER


class Marks:
    """A set of leaves, counted: `tree[1]` is the number of all that are set, the children of k are 2k and 2k + 1."""

    def __init__(self, size: int) -> None:
        self.base = 1 << max(size - 1, 0).bit_length()
        self.tree = [0] * (2 * self.base)

    def __contains__(self, leaf: int) -> bool:
        return self.tree[self.base + leaf] > 0

    def __len__(self) -> int:
        return self.tree[1]

    def set_leaf(self, leaf: int, there: bool) -> None:
        """Add a leaf, or take it out."""
        k = self.base + leaf
        change = int(there) - self.tree[k]
        while change and k:
            self.tree[k] += change
            k >>= 1

    def before(self, leaf: int) -> int:
        """Number of set leaves below `leaf`."""
        k, count = self.base + leaf, 0
        if leaf == self.base:
            return self.tree[1]
        while k > 1:
            if k & 1:
                count += self.tree[k - 1]
            k >>= 1
        return count

    def count(self, low: int, high: int) -> int:
        """Number of set leaves from low to high (excluded)."""
        return self.before(high) - self.before(low)

    def at(self, number: int) -> int:
        """Set leaf at position `number` (from 0) among the set leaves."""
        k = 1
        while k < self.base:
            k *= 2
            if number >= self.tree[k]:
                number -= self.tree[k]
                k += 1
        return k - self.base

    def first(self, low: int, high: int) -> int:
        """First set leaf from low to high (excluded), -1 if there is none."""
        below = self.before(low)
        if below >= self.tree[1]:
            return -1
        leaf = self.at(below)
        return leaf if leaf < high else -1


class Least:
    """A number for each leaf, `NEVER` at first."""

    def __init__(self, size: int) -> None:
        self.base = 1 << max(size - 1, 0).bit_length()
        self.tree = [NEVER] * (2 * self.base)

    def __getitem__(self, leaf: int) -> int:
        return self.tree[self.base + leaf]

    @property
    def least(self) -> int:
        """Least number of all leaves."""
        return self.tree[1]

    def set_leaf(self, leaf: int, value: int) -> None:
        """Set a leaf's number."""
        k = self.base + leaf
        self.tree[k] = value
        while k > 1:
            k >>= 1
            value = min(self.tree[2 * k], self.tree[2 * k + 1])
            if self.tree[k] == value:
                return
            self.tree[k] = value

    def first(self, low: int, high: int) -> tuple[int, int]:
        """(least number, first leaf that has it) from low to high (excluded); (NEVER, -1) if none has one."""
        best, where = NEVER, -1
        parts = []  # subtrees of the range, from the left
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
