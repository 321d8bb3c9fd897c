"""The tree of shares: who is owed how much of a machine, and the factor that follows from what was used.

Source: Slurm's documentation, "Fair Tree Fairshare Algorithm" and "Classic Fairshare Algorithm".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.slurm.dumps import Association
from poolwise.units import SECOND


class ShareTree:
    """Accounts and the users in them, parents before children.

    Attributes
    ----------
    associations : as in the dump
    """

    def __init__(self, associations: Sequence[Association]) -> None:
        self.associations = tuple(associations)

    def __len__(self) -> int:
        return len(self.associations)

    @cached_property
    def parent(self) -> IntArray:
        """(n,) position of the account above, -1 for the root."""
        return np.array([one.parent for one in self.associations], dtype=np.int64)

    @cached_property
    def usage(self) -> FloatArray:
        """(n,) usage in the dump."""
        return np.array([one.usage for one in self.associations], dtype=np.float64)

    @cached_property
    def children(self) -> list[list[int]]:
        """Positions of what is directly below each association."""
        found: list[list[int]] = [[] for _ in self.associations]
        for k, one in enumerate(self.associations):
            if one.parent >= 0:
                found[one.parent].append(k)
        return found

    @cached_property
    def level_share(self) -> FloatArray:
        """(n,) shares over those of all siblings; 1 for the root."""
        found = np.ones(len(self))
        for below in self.children:
            total = sum(self.associations[k].shares for k in below)
            for k in below:
                found[k] = self.associations[k].shares / total if total else 0.0
        return found

    @cached_property
    def _users(self) -> dict[tuple[str, str], int]:
        return {(one.account, one.user): k for k, one in enumerate(self.associations) if one.user}

    @cached_property
    def _alone(self) -> dict[str, int]:
        """Users by name who are in one account only."""
        names = [one.user for one in self.associations if one.user]
        return {user: k for (_, user), k in self._users.items() if names.count(user) == 1}

    def find(self, account: str | None, user: str) -> int:
        """Position of a user in an account (None: in the only one that has this user), -1 for nobody."""
        return self._alone.get(user, -1) if account is None else self._users.get((account, user), -1)

    def above(self, user: int) -> list[int]:
        """A user and all accounts above, the root last."""
        found = [user]
        while (parent := self.associations[found[-1]].parent) >= 0:
            found.append(parent)
        return found

    def fair_tree(self, usage: FloatArray) -> FloatArray:
        """(n,) factor of each user by fair tree, given the (n,) usage; 0 for accounts.

        Siblings are ranked by level fair share, shares over usage, both relative to the siblings; accounts that are even are
        ranked as one. The factor is the rank of the user, counted from the last, over the number of users.
        """
        level = [self._level_fair_share(k, usage) for k in range(len(self))]
        users = sum(1 for one in self.associations if one.user)
        factor, left, given = np.zeros(len(self)), users, users

        def rank(siblings: list[int], tied_with_last: bool) -> None:
            nonlocal left, given
            ordered = sorted(siblings, key=lambda k: (-level[k], not self.associations[k].user))
            before, at = math.nan, 0
            while at < len(ordered):
                first = ordered[at]
                tied = tied_with_last if at == 0 else level[first] == before
                before = level[first]
                if self.associations[first].user:
                    given = given if tied else left
                    factor[first] = given / users
                    left -= 1
                    at += 1
                else:
                    end = at
                    while end < len(ordered) and level[ordered[end]] == before:
                        end += 1
                    rank([child for k in ordered[at:end] for child in self.children[k]], tied)
                    at = end

        rank(self.children[0], False)
        return factor

    def _level_fair_share(self, k: int, usage: FloatArray) -> float:
        parent = self.associations[k].parent
        share = float(self.level_share[k])
        if parent < 0 or share == 0:
            return math.inf if parent < 0 else 0.0
        whole = float(usage[parent])
        used = float(usage[k]) / whole if whole else 0.0
        return share / used if used else math.inf

    def effective(self, usage: FloatArray, above: FloatArray | None = None) -> FloatArray:
        """(n,) effective usage by the classic algorithm: of what was used, and of what the account above used.

        `above` (n,) says what that of accounts is taken to be, where not what follows from the same usage.
        """
        found, total = np.ones(len(self)), float(usage[0])
        for k, one in enumerate(self.associations):
            if one.parent >= 0:
                used = float(usage[k]) / total if total else 0.0
                theirs = found[one.parent] if above is None else above[one.parent]
                top = self.associations[one.parent].parent < 0
                found[k] = used if top else used + (theirs - used) * self.level_share[k]
        return found

    def classic(self, effective: FloatArray, damping: float) -> FloatArray:
        """(n,) factor of each user by the classic algorithm: 2 ** -(effective usage / normalized shares / damping)."""
        share, factor = np.ones(len(self)), np.zeros(len(self))
        for k, one in enumerate(self.associations):
            if one.parent >= 0:
                share[k] = share[one.parent] * self.level_share[k]
                factor[k] = 2.0 ** -(effective[k] / share[k] / damping) if one.user and share[k] > 0 else 0.0
        return factor


class Usage:
    """What each association has used, as of the last recalculation.

    Slurm's arithmetic: at a recalculation all usage decays by d ** (seconds since the last), then each run that is at work
    adds its seconds since then, times d ** those seconds, times its billing, to its user and to all accounts above. What a
    run does between the last recalculation and its end counts for nobody: Slurm 22.05 was seen to do so, to the digit.

    Parameters
    ----------
    tree
        Who shares; its usage is that of time `at`.
    decay
        Part of the usage that is left after a second.
    at
        Ns; the recalculation after which the dump was written.

    Attributes
    ----------
    amount : (n,) usage
    effective : (n,) effective usage; where users are concerned, that of the accounts above is as of the recalculation before
    """

    def __init__(self, tree: ShareTree, decay: float, at: int) -> None:
        self.tree, self.decay, self.at = tree, decay, at
        self.amount = tree.usage.copy()
        printed = np.array([one.effective for one in tree.associations], dtype=np.float64)
        self.effective = np.where(np.isnan(printed), tree.effective(self.amount), printed)

    def advance(self, to: int, whose: IntArray, start: IntArray, end: IntArray, billing: FloatArray) -> None:
        """Recalculate at `to` (ns), given all runs that were at work since the last recalculation.

        Parameters
        ----------
        whose
            (k,) user of each run, -1 for nobody.
        start, end
            (k,) ns; a run that has ended before `to` does not count.
        billing
            (k,) what a second of each run costs.
        """
        before = self.tree.effective(self.amount)
        self.amount *= self.decay ** float(to // SECOND - self.at // SECOND)
        counts = (start < to) & (end >= to) & (whose >= 0)
        seconds = (to // SECOND - np.maximum(start[counts], self.at) // SECOND).astype(np.float64)
        new = np.bincount(whose[counts], seconds * self.decay**seconds * billing[counts], minlength=len(self.tree))
        for k in range(len(new) - 1, 0, -1):  # children before parents
            new[self.tree.parent[k]] += new[k]
        self.amount += new
        self.effective = self.tree.effective(self.amount, before)
        self.at = to
