"""Answers to questions: one model for studies, plans, searches, forecasts, placements, comparisons and explanations.

`poolwise.report` writes it as a page, and `poolwise.cli.output` prints it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

import polars as pl

from poolwise.presentation.cost import Cost, cost_table, tornado
from poolwise.presentation.figure import Figure
from poolwise.presentation.format import format_number
from poolwise.presentation.table import Table
from poolwise.quantities import format_count
from poolwise.short_repr import short_repr

AnswerStatus = Literal["decided", "undecided", "infeasible"]
CardRows = Sequence[Sequence[str]]
"""Rows of a decision: label, value, and the reference's value, which may be omitted."""


@dataclass(frozen=True)
class Certainty:
    """Certainty of an answer as data; `text` states it.

    Attributes
    ----------
    kind : "better" than all alternatives; "alike": not distinguishable from some; "meets" its targets; "interval" or
        "probability" of what is stated; a proven "bound"; or "unknown"
    level : probability that an interval covers the true value; None without intervals
    samples, over : number of samples, 0 if not counted, and their kind: "seeds", "jobs", "workloads"
    interval : of the difference from the runner-up, of the smallest margin to a target, or of what is stated
    probability : probability of what is stated
    better_than, alike : alternatives that are worse, and those that are not distinguishable
    remark : reason for "unknown", or a restriction
    """

    kind: Literal["better", "alike", "meets", "interval", "probability", "bound", "unknown"]
    level: float | None = None
    samples: int = 0
    over: str = ""
    interval: tuple[float, float] | None = None
    probability: float | None = None
    better_than: str = ""
    alike: str = ""
    remark: str = ""

    @property
    def text(self) -> str:
        """The certainty in one line."""
        sampled = format_count(self.samples, self.over.removesuffix("s")) if self.samples else f"the {self.over}"
        over = f" over {sampled}" if self.over else ""
        percent = "" if self.level is None else f"{100 * self.level:g} %"
        low, high = self.interval if self.interval is not None else (float("nan"), float("nan"))
        match self.kind:
            case "better":
                text = f"better than {self.better_than}: the {percent} intervals{over} exclude zero"
            case "alike":
                better = f"better than {self.better_than}, " if self.better_than else ""
                text = f"{better}not distinguishable from {self.alike} ({percent}{over})"
            case "meets":
                text = f"the {percent} interval of each margin{over} clears the target"
            case "interval":
                text = f"{percent} interval{over}: {format_number(low)} to {format_number(high)}"
            case "probability":
                text = f"probability {format_number(100 * (self.probability or 0.0))} %{over}"
            case "bound":
                text = f"{low:.6g}"
            case "unknown":
                return self.remark
        return f"{text}; {self.remark}" if self.remark else text

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; an infinite or undefined bound is None."""
        bounds = None if self.interval is None else [bound if isfinite(bound) else None for bound in self.interval]
        return {
            "kind": self.kind,
            "level": self.level,
            "interval": bounds,
            "probability": self.probability,
            "samples": self.samples,
            "over": self.over,
        }


@dataclass(frozen=True)
class DecisionCard:
    """A recommendation, its certainty and its effects, next to a reference such as today's system.

    Attributes
    ----------
    choice, effects : rows with the recommendation, and rows with its costs and benefits
    certainty : certainty of the choice; None where it does not apply
    reference : name of the third column; "" without a reference
    note : information that a reader needs with the numbers recommended, certainty_of : name of the second column, and label of
    the certainty
    """

    choice: CardRows
    effects: CardRows
    certainty: Certainty | None = None
    reference: str = ""
    note: str = ""
    recommended: str = "recommended"
    certainty_of: str = "Certainty"

    def table(self) -> Table:
        """Return the decision card."""
        columns = ["", self.recommended, *([self.reference] if self.reference else [])]
        certainty = [[self.certainty_of, self.certainty.text]] if self.certainty is not None else []
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
    cost : cost of the recommendation, compared with today; None without prices
    first : sentences to read before the answer: load, jobs that can never run, outliers, whether a few jobs decide it
    because : sentences that support the answer
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
        """All figures except the main one and the folded ones, including the effect of each price."""
        prices = None if self.cost is None else tornado(self.cost)
        return [*self.figures, *([] if prices is None else [prices])]

    @property
    def charts(self) -> list[tuple[Figure, bool]]:
        """(figure, whether it is drawn wide) for all figures, the main one first."""
        small = [*self.small_figures, *(shown for figures in self.further.values() for shown in figures)]
        return [*([] if self.main is None else [(self.main, True)]), *((shown, False) for shown in small)]
