"""Effort of each kind of search per second of time limit: fixed counts, so that results are the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.batch.methods.method import Limit

MOVES = 700_000
"""Annealing moves per second."""
MOVES_MOST = 400_000
"""Annealing moves beyond which column generation achieves the same improvements."""
EXCHANGES, EXCHANGES_LEAST, EXCHANGES_MOST = 40, 2, 20
"""Exchange rounds after a packing is built: per second, minimum and maximum."""
ARITHMETIC, DIVING = 0.34e9, 0.2e9
"""Operations of column generation and of dives per second: about a third of it, and a fifth."""
EXCHANGE = 120
"""Operations of an exchange round per pair of bins."""
DIVES = 60
"""Maximum number of dives; there is always one."""
WHOLE = 3.0
"""Seconds from which a restricted master is solved as an integer program, which depends on the clock."""


@dataclass(eq=False)
class Effort:
    """Budget of one placement.

    Parameters
    ----------
    limit
        The time limit.
    seed
        Random seed.
    guard
        Let the clock end a search early on a machine that is too slow for the budget.
    pace
        Factor on the whole budget.
    cut
        Set once the clock has ended a search early.
    """

    limit: Limit
    seed: int = 0
    guard: bool = True
    pace: float = 1.0
    cut: bool = False

    def late(self, share: float) -> bool:
        """Return whether a fraction of the time limit has passed; always False without the guard."""
        over = self.guard and self.limit.spent > self.limit.seconds * share
        self.cut |= over
        return over

    @property
    def seconds(self) -> float:
        """Time limit times the pace."""
        return self.limit.seconds * self.pace

    @property
    def moves(self) -> int:
        """Annealing moves."""
        return min(int(self.seconds * MOVES), MOVES_MOST)

    @property
    def exchanges(self) -> int:
        """Exchange rounds."""
        return min(max(int(self.seconds * EXCHANGES), EXCHANGES_LEAST), EXCHANGES_MOST)

    @property
    def arithmetic(self) -> float:
        """Operations of column generation."""
        return self.seconds * ARITHMETIC

    @property
    def diving(self) -> float:
        """Operations of dives."""
        return self.seconds * DIVING

    @property
    def whole(self) -> bool:
        """True if there is time to solve an integer program."""
        return self.seconds >= WHOLE
