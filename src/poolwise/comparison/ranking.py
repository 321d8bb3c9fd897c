"""Ranking of candidates, and the answer that plans and order searches build from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import polars as pl

from poolwise.hashing import Json
from poolwise.presentation.answer import Answer, AnswerStatus
from poolwise.presentation.figure import Figure
from poolwise.presentation.table import frame_table

State = Literal["keeps", "breaks", "undecided"]
"""Verdict on a candidate: it is shown to meet the targets, shown to miss one, or neither."""
K = TypeVar("K")


@dataclass(frozen=True)
class CandidateRanking(Generic[K]):
    """The candidates that decide a plan or a search.

    Attributes
    ----------
    best : best candidate, by the objective, among those shown to meet the targets
    runner_up : next best of these candidates
    undecided : best of the candidates that are better than `best` but not shown either to meet or to miss the targets
    """

    best: K | None
    runner_up: K | None = None
    undecided: K | None = None

    @classmethod
    def of(cls, ranked: Sequence[K], state: Callable[[K], State], objective: Callable[[K], float]) -> CandidateRanking[K]:
        """Rank candidates, given in ascending order of the objective, which is minimized."""
        keeping = [k for k in ranked if state(k) == "keeps"]
        best = keeping[0] if keeping else None
        undecided = (k for k in ranked if state(k) == "undecided" and (best is None or objective(k) < objective(best)))
        return cls(best, keeping[1] if len(keeping) > 1 else None, next(undecided, None))

    @property
    def status(self) -> AnswerStatus:
        """Undecided if a better candidate might meet the targets; infeasible if none does."""
        return "undecided" if self.undecided is not None else "infeasible" if self.best is None else "decided"

    def answer(
        self,
        rows: Sequence[K],
        frame: pl.DataFrame,
        describe: Callable[[K], Json],
        content: Mapping[str, Any],
        figures: Sequence[Figure],
        **parts: Any,
    ) -> Answer:
        """Build the answer.

        Parameters
        ----------
        rows, frame
            The candidates, and a table with one row for each.
        describe
            Returns a candidate as plain data.
        content
            The rest of the answer as plain data.
        figures
            The main figure, and the others.
        parts
            Other fields of the answer; `tables` are by default the candidates.
        """
        chosen = None if self.best is None else rows.index(self.best)
        deciding = {"chosen": self.best, "runner_up": self.runner_up, "undecided": self.undecided}
        described = {name: None if k is None else describe(k) for name, k in deciding.items()}
        return Answer(
            **{
                "status": self.status,
                "candidates": frame,
                "chosen": chosen,
                "content": {**described, **content},
                "main": figures[0] if figures else None,
                "figures": figures[1:],
                "tables": [frame_table(frame, chosen)],
                **parts,
            }
        )
