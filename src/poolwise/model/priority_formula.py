"""Priorities that are a sum of terms, as plain data from which kernels recalculate them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.short_repr import short_repr


class ShareRanking(NamedTuple):
    """Factors that follow from level fair shares, and the comparisons of these shares that determine the factors.

    Attributes
    ----------
    before, behind : (k,) associations that are compared, row by row
    leads : (k,) whether the level fair share in `before` is larger than that in `behind`; otherwise they are equal
    factor : (n,) factor of each user, 0 for accounts

    Examples
    --------
    >>> import numpy as np
    >>> from poolwise.interfaces import ShareRanking
    >>> ranking = ShareRanking(np.array([1]), np.array([2]), np.array([True]), np.array([0.0, 1.0, 0.5]))
    >>> ranking.holds(np.array([0.0, 3.0, 2.0])), ranking.holds(np.array([0.0, 2.0, 3.0]))
    (True, False)
    """

    before: IntArray
    behind: IntArray
    leads: BoolArray
    factor: FloatArray

    def holds(self, level: FloatArray) -> bool:
        """Return whether comparing (n,) level fair shares gives the same results, so that the factors still apply."""
        before, behind = level[self.before], level[self.behind]
        return bool(((before > behind) == self.leads).all() and (before >= behind).all())

    def __repr__(self) -> str:
        return short_repr(self)


class UsageShares(NamedTuple):
    """Fair shares by usage that decays: a term of a `PriorityFormula`.

    At each recalculation, all usage decays. Each run that lasts until then adds usage to its user and to all accounts
    above: its seconds since the last recalculation, times the fraction that remains after these seconds, times its billing.

    Attributes
    ----------
    weight : priority of a factor of 1
    user : (n_job,) association of each job's user, -1 for users without a share
    billing : (n_job,) usage of a job per second
    parent : (n,) account above each association, -1 for the root
    share : (n,) shares relative to those of all siblings
    upward : (n - 1,) all associations but the root, in the order in which each is added to the account above
    usage : (n,) usage as of `at`
    at : time (ns) of a recalculation
    decay : fraction of the usage that remains after one second
    remains : (n_second,) fraction of the usage of a run that remains after k seconds, for each k of a period
    rank : function that ranks (n,) level fair shares (shares over usage, both relative to the siblings)

    Examples
    --------
    >>> import numpy as np
    >>> from poolwise.interfaces import ShareRanking, UsageShares
    >>> def alone(level):
    ...     none = np.zeros(0, dtype=np.int64)
    ...     return ShareRanking(none, none, none > 0, np.array([0.0, 1.0]))
    >>> user, parent = np.array([1]), np.array([-1, 0])
    >>> shares = UsageShares(1e4, user, np.ones(1), parent, np.ones(2), user, np.zeros(2), 0, 1.0, np.ones(301), alone)
    >>> shares.rank(np.ones(2)).factor[user]
    array([1.])
    """

    weight: float
    user: IntArray
    billing: FloatArray
    parent: IntArray
    share: FloatArray
    upward: IntArray
    usage: FloatArray
    at: int
    decay: float
    remains: FloatArray
    rank: Callable[[FloatArray], ShareRanking]

    def __repr__(self) -> str:
        return short_repr(self)


class PriorityFormula(NamedTuple):
    """Priorities of a `RecalculatedOrder` as a sum, complete enough that kernels compute the same priorities.

    The priority is the age, relative to `max_age` and at most 1, times its weight; plus the fair share; plus the rows of
    `added`, in order; minus those of `subtracted`; limited to the range from 1 to `most`, and rounded down.

    Attributes
    ----------
    age : weight of the age
    max_age : seconds since submission at which the relative age reaches 1
    shares : fair shares, if they count
    added, subtracted : (n_term, n_job) terms that never change
    most : highest priority

    Examples
    --------
    >>> import numpy as np
    >>> from poolwise.interfaces import PriorityFormula
    >>> PriorityFormula(1000.0, 86_400.0, None, np.zeros((0, 3)), np.zeros((0, 3)), 4294967295.0).max_age
    86400.0
    """

    age: float
    max_age: float
    shares: UsageShares | None
    added: FloatArray
    subtracted: FloatArray
    most: float

    def __repr__(self) -> str:
        return short_repr(self)
