"""How much of each kind of search a time limit stands for: the same on every machine, so that answers are the same."""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.batch.methods.method import Limit

MOVES = 700_000
"""Moves of annealing for each second."""
MOVES_MOST = 400_000
"""Moves beyond which annealing improves nothing that column generation would not."""
EXCHANGES, EXCHANGES_LEAST, EXCHANGES_MOST = 40, 2, 20
"""Rounds of exchange after a packing is made, for each second; the least and the most of them."""
ARITHMETIC, DIVING = 0.34e9, 0.2e9
"""Operations of column generation, and of dives, for each second: about a third of it, and a fifth."""
EXCHANGE = 120
"""Operations of a round of exchange, for each pair of bins."""
DIVES = 60
"""Largest number of dives; there is always one."""
WHOLE = 3.0
"""Seconds from which a restricted master is solved with whole numbers, which looks at the clock."""


@dataclass(eq=False)
class Effort:
    """What one placement may spend.

    Parameters
    ----------
    limit
        The time limit.
    seed
        Seed of all random numbers.
    guard
        Whether the clock may end a search early, on a machine too slow for what the limit stands for.
    pace
        Factor on all of it.
    cut
        Whether the clock has ended a search early.
    """

    limit: Limit
    seed: int = 0
    guard: bool = True
    pace: float = 1.0
    cut: bool = False

    def late(self, share: float) -> bool:
        """Whether a share of the time limit is over; never without the guard."""
        over = self.guard and self.limit.spent > self.limit.seconds * share
        self.cut |= over
        return over

    @property
    def seconds(self) -> float:
        """Time limit, at the pace."""
        return self.limit.seconds * self.pace

    @property
    def moves(self) -> int:
        """Moves of annealing."""
        return min(int(self.seconds * MOVES), MOVES_MOST)

    @property
    def exchanges(self) -> int:
        """Rounds of exchange."""
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
        """Whether there is time for whole numbers."""
        return self.seconds >= WHOLE
