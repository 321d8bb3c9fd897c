"""Share tree and usage: the fair-share factors of associations.

Source: Slurm's documentation, "Fair Tree Fairshare Algorithm" and "Classic Fairshare Algorithm".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.model.priority_formula import ShareRanking
from poolwise.quantities import SECOND
from poolwise.slurm.dumps import Association


class ShareTree:
    """Accounts and users in the order of the dump, parents before children.

    Attributes
    ----------
    associations : the associations of the dump
    """

    def __init__(self, associations: Sequence[Association]) -> None:
        self.associations = tuple(associations)
        self._ranking: ShareRanking | None = None  # the last one

    def __len__(self) -> int:
        return len(self.associations)

    @cached_property
    def parent(self) -> IntArray:
        """Positions of the parent accounts, (n,); -1 for the root."""
        return np.array([association.parent for association in self.associations], dtype=np.int64)

    @cached_property
    def usage(self) -> FloatArray:
        """Usage in the dump, (n,)."""
        return np.array([association.usage for association in self.associations], dtype=np.float64)

    @cached_property
    def children(self) -> list[list[int]]:
        """Positions of the direct children of each association."""
        children_of: list[list[int]] = [[] for _ in self.associations]
        for k, association in enumerate(self.associations):
            if association.parent >= 0:
                children_of[association.parent].append(k)
        return children_of

    @cached_property
    def level_share(self) -> FloatArray:
        """Shares relative to the total of all siblings, (n,); 1 for the root."""
        values = np.ones(len(self))
        for below in self.children:
            total = sum(self.associations[k].shares for k in below)
            for k in below:
                values[k] = self.associations[k].shares / total if total else 0.0
        return values

    @cached_property
    def _users(self) -> dict[tuple[str, str], int]:
        return {
            (association.account, association.user): k for k, association in enumerate(self.associations) if association.user
        }

    @cached_property
    def _single_account_users(self) -> dict[str, int]:
        """Positions of the users that belong to exactly one account, by name."""
        names = [association.user for association in self.associations if association.user]
        return {user: k for (_, user), k in self._users.items() if names.count(user) == 1}

    def find(self, account: str | None, user: str) -> int:
        """Return the position of a user in an account, or in the user's only account if it is None; -1 if not found."""
        return self._single_account_users.get(user, -1) if account is None else self._users.get((account, user), -1)

    def above(self, user: int) -> list[int]:
        """Return the positions of a user and of all accounts above it, the root last."""
        chain = [user]
        while (parent := self.associations[chain[-1]].parent) >= 0:
            chain.append(parent)
        return chain

    @cached_property
    def _depths(self) -> list[IntArray]:
        """Positions at each depth below the root, ascending, the accounts and users of the root first."""
        depth = np.zeros(len(self), dtype=np.int64)
        for k, parent in enumerate(self.parent.tolist()):
            depth[k] = depth[parent] + 1 if parent >= 0 else 0
        return [np.flatnonzero(depth == d) for d in range(1, int(depth.max(initial=0)) + 1)]

    @cached_property
    def _upward(self) -> list[IntArray]:
        """Positions at each depth, in descending order, the deepest level first."""
        return [positions[::-1] for positions in reversed(self._depths)]

    @cached_property
    def upward(self) -> IntArray:
        """Positions in the order in which `total` adds each to its parent, (n - 1,)."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *self._upward])

    @cached_property
    def _is_user(self) -> BoolArray:
        return np.array([bool(association.user) for association in self.associations], dtype=np.bool_)

    @cached_property
    def _users_below(self) -> IntArray:
        """Number of users at or below each association, (n,)."""
        return self.total(self._is_user.astype(np.float64)).astype(np.int64)

    def total(self, amount: FloatArray) -> FloatArray:
        """Return the sum of amounts at or below each association, (n,), added from the last to the first in each account."""
        amount = amount.copy()
        for below in self._upward:
            np.add.at(amount, self.parent[below], amount[below])
        return amount

    def fair_tree(self, usage: FloatArray) -> FloatArray:
        """Return the fair-tree factor of each user, (n,), given the (n,) usage; 0 for accounts.

        Siblings are ranked by level fair share, the ratio of shares to usage, both relative to the siblings. Tied accounts
        are merged and ranked as one. The factor is the user's rank, counted from the last, divided by the number of users.
        """
        level = self._level_fair_share(usage)
        if self._ranking is None or not self._ranking.holds(level):
            self._ranking = self.rank(level)
        return self._ranking.factor

    def rank(self, level: FloatArray) -> ShareRanking:
        """Rank the users by (n,) level fair shares."""
        ahead, group = np.zeros((2, len(self)), dtype=np.int64)  # users ranked before, and the merged accounts it belongs to
        tied = np.zeros(len(self), dtype=np.bool_)  # with the last user ranked before
        compared = [np.zeros((3, 0), dtype=np.int64)]
        for positions in self._depths:
            parent = self.parent[positions]
            order = np.lexsort((~self._is_user[positions], -level[positions], group[parent]))  # users before tied accounts
            k, parent = positions[order], parent[order]
            begins, is_user, users = _differ(group[parent]), self._is_user[k], self._users_below[k]
            leads = begins | _differ(level[k])
            inside = np.flatnonzero(~begins)
            compared.append(np.array([k[inside - 1], k[inside], leads[inside]]))
            before = np.cumsum(users) - users
            before -= before[np.maximum.accumulate(np.where(begins, np.arange(len(k)), 0))]
            merged = ~(is_user | leads | np.append(True, is_user[:-1]))  # into the accounts of the row before
            first = np.maximum.accumulate(np.where(merged, 0, np.arange(len(k))))
            ahead[k] = (ahead[parent] + before)[first]
            tied[k] = np.where(leads, begins & tied[parent], True)[first]
            group[k] = k[first]
        ranked = np.flatnonzero(self._is_user)
        ranked = ranked[np.argsort(ahead[ranked])]
        rank = np.maximum.accumulate(np.where(tied[ranked], 0, np.arange(len(ranked))))
        factor = np.zeros(len(self))
        factor[ranked] = (len(ranked) - rank) / len(ranked)
        factor.flags.writeable = False
        pairs = np.concatenate(compared, axis=1)
        return ShareRanking(pairs[0], pairs[1], pairs[2] > 0, factor)

    def _level_fair_share(self, usage: FloatArray) -> FloatArray:
        """Return shares over usage, both relative to the siblings, (n,); infinite for the root and without usage."""
        whole = usage[self.parent]  # of the root, which has no parent, any number
        used = np.divide(usage, whole, out=np.zeros(len(self)), where=whole != 0)
        values: FloatArray = np.divide(self.level_share, used, out=np.full(len(self), math.inf), where=used != 0)
        values[self.level_share == 0] = 0.0
        values[self.parent < 0] = math.inf
        return values

    def effective(self, usage: FloatArray, above: FloatArray | None = None) -> FloatArray:
        """Return the effective usage of the classic algorithm, (n,): own usage blended with the parent account's.

        `above` (n,) overrides the effective usage of parent accounts, which otherwise follows from the same usage.
        """
        values, total = np.ones(len(self)), float(usage[0])
        for k, association in enumerate(self.associations):
            if association.parent >= 0:
                used = float(usage[k]) / total if total else 0.0
                parents = values[association.parent] if above is None else above[association.parent]
                top = self.associations[association.parent].parent < 0
                values[k] = used if top else used + (parents - used) * self.level_share[k]
        return values

    def classic(self, effective: FloatArray, damping: float) -> FloatArray:
        """Return the classic factor of each user, (n,): 2 ** -(effective usage / normalized shares / damping)."""
        share, factor = np.ones(len(self)), np.zeros(len(self))
        for k, association in enumerate(self.associations):
            if association.parent >= 0:
                share[k] = share[association.parent] * self.level_share[k]
                factor[k] = 2.0 ** -(effective[k] / share[k] / damping) if association.user and share[k] > 0 else 0.0
        return factor


def _differ(values: IntArray | FloatArray) -> BoolArray:
    """Return whether each value differs from the one before, (k,); True for the first."""
    return np.append(True, values[1:] != values[:-1])


class Usage:
    """Usage of each association as of the last recalculation.

    The arithmetic is Slurm's. At a recalculation, all usage is multiplied by d ** (seconds since the last recalculation). Each
    active run then adds its seconds since then, times d ** those seconds, times its billing rate, to its user and to all
    accounts above. The time between the last recalculation and the end of a run is never charged, as observed to the digit in
    Slurm 22.05.

    Parameters
    ----------
    tree
        The share tree, with the usage as of `at`.
    decay
        Fraction of the usage that remains after one second.
    at
        Time (ns) of the recalculation after which the dump was written.
    classic
        Whether to compute the effective usage, which only the classic algorithm needs.

    Attributes
    ----------
    amount : (n,) usage
    effective : (n,) effective usage; that of a user depends on that of the accounts as of the previous recalculation
    """

    def __init__(self, tree: ShareTree, decay: float, at: int, *, classic: bool = True) -> None:
        self.tree, self.decay, self.at, self.classic = tree, decay, at, classic
        self.amount = tree.usage.copy()
        printed = np.array([association.effective for association in tree.associations], dtype=np.float64)
        self.effective = np.where(np.isnan(printed), tree.effective(self.amount), printed)
        self._remains = np.ones(1)

    def remains(self, seconds: int) -> FloatArray:
        """Return the fraction of the usage that remains after k seconds, for each k up to at least `seconds`."""
        if seconds >= len(self._remains):
            self._remains = self.decay ** np.arange(seconds + 1, dtype=np.float64)
        return self._remains

    def advance(self, to: int, whose: IntArray, start: IntArray, end: IntArray, billing: FloatArray) -> None:
        """Recalculate at `to` (ns), given all runs that were active since the last recalculation.

        Parameters
        ----------
        whose
            (k,) position of each run's user, -1 for users without a share.
        start, end
            (k,) ns; runs that ended before `to` do not count.
        billing
            (k,) billing rate of each run per second.
        """
        before = self.tree.effective(self.amount) if self.classic else self.effective
        self.amount *= self.decay ** float(to // SECOND - self.at // SECOND)
        counts = (start < to) & (end >= to) & (whose >= 0)
        seconds = to // SECOND - np.maximum(start[counts], self.at) // SECOND
        charged = seconds * self.remains(int(seconds.max(initial=0)))[seconds] * billing[counts]
        new = np.bincount(whose[counts], charged, minlength=len(self.tree)).astype(np.float64)
        self.amount += self.tree.total(new)
        if self.classic:
            self.effective = self.tree.effective(self.amount, before)
        self.at = to
