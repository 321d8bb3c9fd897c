"""The answer to a question: one model for studies, plans, searches, forecasts, placements, comparisons and explanations.

`poolwise.report` writes it as a page, and `poolwise.cli.output` prints it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from poolwise.presentation.cost import Cost, cost_table, tornado
from poolwise.presentation.figure import Figure
from poolwise.presentation.table import Table
from poolwise.short_repr import short_repr

AnswerStatus = Literal["decided", "undecided", "infeasible"]
CardRows = Sequence[Sequence[str]]
"""Rows of a decision: label, value, and the value of the reference, which may be omitted."""


@dataclass(frozen=True)
class DecisionCard:
    """A recommendation, its certainty and its effects, next to a reference such as today's system.

    Attributes
    ----------
    choice, effects : rows of what is recommended, and of what it costs and brings
    certainty : certainty of the choice in one line; "" where it does not apply
    reference : name of the third column; "" without a reference
    note : what a reader needs with the numbers
    recommended, certainty_of : name of the second column, and label of the certainty
    """

    choice: CardRows
    effects: CardRows
    certainty: str = ""
    reference: str = ""
    note: str = ""
    recommended: str = "recommended"
    certainty_of: str = "Certainty"

    def table(self) -> Table:
        """Return the decision card."""
        columns = ["", self.recommended, *([self.reference] if self.reference else [])]
        certainty = [[self.certainty_of, self.certainty]] if self.certainty else []
        rows = [[*row, "", ""][: len(columns)] for row in (*self.choice, *certainty, *self.effects)]
        return Table("Decision", columns, rows, self.note)


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a question, for people and programs.

    Attributes
    ----------
    title : subject of the question
    headline : the answer in one line
    status : decided; undecided within the budget; or infeasible: nothing meets the targets
    decision : recommendation, certainty and effects; None without one
    cost : what the recommendation costs, compared with today; None without prices
    first : sentences to read before the answer: load, jobs that can never run, outliers, whether a few jobs decide it
    because : sentences that support it
    sections, after : heading -> further sentences, below the main figure and below the tables
    notes : remarks on the numbers
    main, figures : the main figure, drawn wide, and the others
    further : heading -> figures of a folded section
    head, tables : tables above the figures, and folded tables
    candidates, chosen : one row per alternative, and the row that is the answer; None without one
    content : the answer as plain data
    inputs, seeds : input file -> SHA-256, and the seeds of the runs
    links : text -> file in the folder of the report
    provenance : name -> version or hash
    """

    __repr__ = short_repr

    title: str = ""
    headline: str = ""
    status: AnswerStatus = "decided"
    decision: DecisionCard | None = None
    cost: Cost | None = None
    first: Sequence[str] = ()
    because: Sequence[str] = ()
    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    after: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    main: Figure | None = None
    figures: Sequence[Figure] = ()
    further: Mapping[str, Sequence[Figure]] = field(default_factory=dict)
    head: Sequence[Table] = ()
    tables: Sequence[Table] = ()
    candidates: pl.DataFrame = field(default_factory=pl.DataFrame)
    chosen: int | None = None
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    inputs: Mapping[str, str] = field(default_factory=dict, repr=False)
    seeds: Sequence[int] = field(default=(), repr=False)
    links: Mapping[str, str] = field(default_factory=dict, repr=False)
    provenance: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def found(self) -> bool:
        """True if something is recommended."""
        return self.decision is not None and self.status != "infeasible"

    @property
    def card(self) -> Table | None:
        """The decision as a table."""
        return None if self.decision is None else self.decision.table()

    @property
    def all_tables(self) -> list[Table]:
        """The folded tables, with the bill."""
        return [*self.tables, *([] if self.cost is None else [cost_table(self.cost)])]

    @property
    def small_figures(self) -> list[Figure]:
        """All figures but the main one and the folded ones, with the effect of each price."""
        prices = None if self.cost is None else tornado(self.cost)
        return [*self.figures, *([] if prices is None else [prices])]

    @property
    def charts(self) -> list[tuple[Figure, bool]]:
        """All figures, the main one first, each with whether it is drawn wide."""
        small = [*self.small_figures, *(shown for found in self.further.values() for shown in found)]
        return [*([] if self.main is None else [(self.main, True)]), *((shown, False) for shown in small)]
