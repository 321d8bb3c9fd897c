"""Effort of each kind of search per unit of work: fixed counts, so that results are the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.batch.methods.method import Limit

MOVES = 700_000
"""Annealing moves per unit of work."""
MOVES_MOST = 400_000
"""Annealing moves beyond which column generation achieves the same improvements."""
EXCHANGES, EXCHANGES_LEAST, EXCHANGES_MOST = 40, 2, 20
"""Exchange rounds after a packing is built: number per unit of work, minimum and maximum."""
ARITHMETIC, DIVING = 0.34e9, 0.2e9
"""Operations of column generation and of dives per unit of work; they take about a third and a fifth of a second."""
EXCHANGE = 120
"""Operations of an exchange round per pair of bins."""
DIVES = 60
"""Maximum number of dives; there is always one."""
WHOLE = 3.0
"""Minimum work for solving a restricted master as an integer program."""
NODES = 200
"""Nodes of the integer program per unit of work, if only the work is limited."""


@dataclass(eq=False)
class Effort:
    """Budget of one placement.

    Parameters
    ----------
    limit
        The limit of the method; with its time limit, the clock ends a search early on a machine that is too slow for the work.
    work
        Units of work of this placement (see `Limit`).
    seed
        Random seed.
    guard
        Observe the time limit.
    cut
        Whether the clock has ended a search early.
    """

    limit: Limit
    work: float
    seed: int = 0
    guard: bool = True
    cut: bool = False

    @classmethod
    def of(cls, limit: Limit, seed: int = 0, guard: bool = True, pace: float = 1.0) -> Effort:
        """Return the effort within a limit; `pace` converts seconds to work if the limit does not limit the work."""
        return cls(limit, limit.seconds * pace if limit.work is None else limit.work, seed, guard)

    def late(self, share: float) -> bool:
        """Return whether a fraction of the time limit has passed; always False without the guard."""
        over = self.guard and self.limit.is_timed and self.limit.spent > self.limit.seconds * share
        self.cut |= over
        return over

    @property
    def moves(self) -> int:
        """Number of annealing moves."""
        return min(int(self.work * MOVES), MOVES_MOST)

    @property
    def exchanges(self) -> int:
        """Number of exchange rounds."""
        return min(max(int(self.work * EXCHANGES), EXCHANGES_LEAST), EXCHANGES_MOST)

    @property
    def arithmetic(self) -> float:
        """Number of operations of column generation."""
        return self.work * ARITHMETIC

    @property
    def diving(self) -> float:
        """Number of operations of dives."""
        return self.work * DIVING

    @property
    def whole(self) -> bool:
        """True if the work suffices to solve an integer program."""
        return self.work >= WHOLE

    @property
    def seconds_left(self) -> float | None:
        """Seconds left for an integer program; None if only `nodes` limits it, not the clock."""
        return self.limit.left if self.guard and self.limit.is_timed else None

    @property
    def nodes(self) -> int:
        """Number of nodes of an integer program."""
        return int(self.work * NODES)
