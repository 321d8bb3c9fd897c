"""Arrays of priorities that kernels recalculate as sums of age, fair shares with decaying usage, and fixed terms."""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, FloatArray, IntArray


class FormulaRules(NamedTuple):
    """Rules of the priorities."""

    exists: bool  # if not, the caller computes the priorities
    # ns between two recalculations, and the time of one of them
    period: int
    first: int
    # weight of the age, s that count as an age of 1, and the highest priority
    age: float
    max_age: float
    most: float
    shares: bool  # whether usage counts
    decay: float  # fraction of the usage that remains after a period


class FormulaStatus:
    """Record of the scalars that change from one recalculation to the next; see `kernels.common.state.record`."""

    usage_at: int  # ns up to which usage has been counted
    active: int  # runs in `Formula.active`
    started: int  # runs that have ever been in it
    pairs: int  # pairs in `Formula.before` and `.behind`, -1 before the first ranking


class Formula(NamedTuple):
    """Priorities as a sum, and the usage that they depend on."""

    rules: FormulaRules
    status: FormulaStatus
    # (n_term, n_job) terms, in the order of addition
    added: FloatArray
    subtracted: FloatArray
    user: IntArray  # (n_job,) position of the job's user, -1 without a share
    billing: FloatArray  # (n_job,) usage per second
    remains: FloatArray  # (n_second,) fraction of the usage that remains after k seconds
    # (n,) users and the accounts above them: the account above, -1 for none; shares relative to those of all siblings; usage;
    # level fair shares
    parent: IntArray
    share: FloatArray
    usage: FloatArray
    level: FloatArray
    upward: IntArray  # (n - 1,) all that have an account above, in the order in which they are added to it
    charged: FloatArray  # (n,) scratch
    # (n,) pairs of positions that the last ranking compared, and whether the level fair share of the first was larger;
    # otherwise they were equal
    before: IntArray
    behind: IntArray
    leads: BoolArray
    factor: FloatArray  # (n + 1,) 0, for users without a share, and the weighted factor of each position by that ranking
    active: IntArray  # (n_job,) runs that were active at the last recalculation or have started since, by job
