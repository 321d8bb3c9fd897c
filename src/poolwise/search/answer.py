"""Result of an order search: orders found on training workloads, chosen on validation workloads, measured on test workloads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import tomli_w

from poolwise.arrays import FloatArray
from poolwise.atomic_write import write_whole
from poolwise.code_fingerprint import sources
from poolwise.comparison.fairest import fairest
from poolwise.comparison.ranking import CandidateRanking
from poolwise.hashing import Json, pretty
from poolwise.metrics import Interval, mean_interval
from poolwise.optimize.front import front
from poolwise.presentation.answer import Answer, Certainty, DecisionCard
from poolwise.presentation.figure import Axis, Scatter
from poolwise.presentation.table import Table
from poolwise.runner import Executor, Store, TaskRunner
from poolwise.search.evaluation import Evaluator, span_s
from poolwise.search.objectives import FLOOR_S, OBJECTIVE_LABELS, OBJECTIVES
from poolwise.search.problem import OrderCandidate, OrderSearchProblem, SplitName
from poolwise.search.sampling import sample, satisfies_constraints
from poolwise.search.significance import Ratios, best, ratios
from poolwise.version import __version__

OPENINGS = "test-openings.jsonl"
"""Log file that records each use of the test workloads."""


@dataclass(frozen=True, eq=False)
class JudgedOrder:
    """An order and its ratios to the baseline on each evaluated split.

    Attributes
    ----------
    role : "found" by the search, or "known": listed in the file
    keeps : True if its means satisfy the constraints on training and validation workloads
    on_front : True if it is on the Pareto front of the orders evaluated on the validation workloads
    """

    candidate: OrderCandidate
    role: str
    keeps: bool
    on_front: bool
    on: Mapping[SplitName, Ratios]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A search and its result.

    Attributes
    ----------
    judged : orders evaluated on the validation workloads, found ones first
    chosen : of the found orders that satisfy the constraints and that no other is shown to beat in the first objective on the
        validation workloads, the one with the lowest D10; None if there is none
    trained : (n_candidate, 4) ratios of every candidate on the training workloads
    notes : caveats about the numbers
    opened : number of times that the test workloads have been used in this folder, including this time; 0 if never
    """

    search: OrderSearchProblem
    folder: Path
    judged: Sequence[JudgedOrder]
    chosen: JudgedOrder | None
    candidates: Sequence[OrderCandidate]
    trained: FloatArray
    notes: Sequence[str]
    opened: int

    @property
    def ranking(self) -> CandidateRanking[JudgedOrder]:
        """The chosen order, and the best of the other eligible ones by the first objective."""
        others = (order for order in _eligible(self.search, self.judged) if order is not self.chosen)
        return CandidateRanking(self.chosen, next(others, None))

    def headline(self) -> str:
        """Return the result in one sentence."""
        if self.chosen is None:
            return f"none of the {len(self.candidates)} candidates satisfies the constraints on the validation workloads"
        split: SplitName = "test" if "test" in self.chosen.on else "validation"
        parts = [f"{OBJECTIVE_LABELS[name]} {ratio} [{ratio.word}]" for name, ratio in self.chosen.on[split].items()]
        return f"{self.chosen.candidate.name}, {split} workloads, relative to {self.search.baseline.name}: {'; '.join(parts)}"

    def answer(self) -> Answer:
        """Return the answer, with the Pareto front as its figure."""
        baseline, search = self.search.baseline.name, self.search
        shown = [(judged, split, compared) for judged in self.judged for split, compared in judged.on.items()]
        count = f"{len(self.candidates)} candidates were evaluated on {len(search.splits['train'])} training workloads."
        orders = Table(
            "Orders",
            ["order", "role", "workloads", *(OBJECTIVE_LABELS[name] for name in OBJECTIVES)],
            [
                [
                    judged.candidate.name,
                    judged.role,
                    split,
                    *(f"{compared[name]}, {compared[name].word}" for name in OBJECTIVES),
                ]
                for judged, split, compared in shown
            ],
            f'Ratios to {baseline} with 95 % intervals over paired workloads. The table states "less" or "more" only if the '
            "interval excludes 1.",
            marks={k: "chosen" for k, (judged, *_) in enumerate(shown) if judged is self.chosen},
        )
        return self.ranking.answer(
            [judged for judged, *_ in shown],
            self.frame(),
            _describe,
            self._content(),
            [self._front()],
            title=search.title,
            headline=self.headline(),
            decision=None if self.chosen is None else self._decision(self.chosen),
            because=[count],
            notes=self.notes,
            tables=[orders],
            provenance=self.provenance(),
        )

    def _decision(self, chosen: JudgedOrder) -> DecisionCard:
        split: SplitName = "test" if "test" in chosen.on else "validation"
        effects = [[OBJECTIVE_LABELS[name], f"{ratio}, {ratio.word}"] for name, ratio in chosen.on[split].items()]
        (goal, ratio), baseline = next(iter(chosen.on[split].items())), self.search.baseline.name
        note, of = f"Ratios to {baseline} on the {split} workloads.", f"{OBJECTIVE_LABELS[goal]}, relative to {baseline}"
        certainty = Certainty("interval", 0.95, ratio.workloads, "workloads", (ratio.low, ratio.high), remark=of)
        if ratio.workloads == 1:
            certainty = Certainty("unknown", samples=1, over="workloads", remark="unknown (one workload)")
        return DecisionCard([["Queue order", chosen.candidate.name]], effects, certainty, note=note)

    def _front(self) -> Scatter:
        """Draw all candidates on the training workloads, and the known orders and the choice on the validation workloads."""
        baseline = self.search.baseline.name
        x, y = (OBJECTIVES.index(name) for name in ("bounded_slowdown", "longest_wait"))
        series = {"candidates, training": (self.trained[:, x].tolist(), self.trained[:, y].tolist())}
        for judged in self.judged:
            if judged.role == "known" or judged is self.chosen:
                means = [ratio.mean for ratio in judged.on["validation"].values()]
                series[f"{judged.candidate.name}, validation"] = ([means[x]], [means[y]])
        return Scatter(
            "front",
            "Gains and losses of each order",
            f"Ratios to {baseline}, geometric means over the workloads; a ratio of 1 equals {baseline}.",
            series=series,
            x_axis=Axis(f"{OBJECTIVE_LABELS['bounded_slowdown']}, relative to {baseline}"),
            y_axis=Axis(f"{OBJECTIVE_LABELS['longest_wait']}, relative to {baseline}", log=True),
        )

    def frame(self) -> pl.DataFrame:
        """Return one row per order and split, with ratios and the bounds of their intervals."""
        rows: list[dict[str, Any]] = []
        for judged in self.judged:
            for split, compared in judged.on.items():
                row: dict[str, Any] = {"order": judged.candidate.name, "role": judged.role, "split": split}
                row |= {"keeps": judged.keeps, "front": judged.on_front}
                for name, ratio in compared.items():
                    row |= {name: ratio.mean, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
                rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> Json:
        """Return plain data, as `poolwise search --json` prints it."""
        return {**self.answer().content, "notes": list(self.notes)}

    def _content(self) -> Json:
        return {
            "search": self.search.name,
            "title": self.search.title,
            "headline": self.headline(),
            "baseline": self.search.baseline.name,
            "candidates": len(self.candidates),
            "orders": [_describe(judged) for judged in self.judged],
            "test_opened": self.opened,
        }

    def provenance(self) -> Json:
        """Return the Poolwise version and the hashes of all inputs."""
        return {
            "poolwise": __version__,
            "search": self.search.name,
            "search_sha256": self.search.sha256,
            "sources_sha256": sources(),
            "workloads": {split: [cell.key for cell in cells] for split, cells in self.search.splits.items()},
        }

    def write(self) -> None:
        """Write search.json, orders.csv, candidates.csv, provenance.json and, if an order was chosen, scheduler.toml."""
        write_whole(self.folder / "search.json", pretty(self.to_dict()))
        write_whole(self.folder / "orders.csv", self.frame().write_csv().encode())
        write_whole(self.folder / "candidates.csv", self._trained().write_csv().encode())
        write_whole(self.folder / "provenance.json", pretty({**self.provenance(), "content": self.search.content}))
        if self.chosen is not None:
            written = self.chosen.candidate.section.model_dump(exclude_defaults=True, exclude_none=True)
            tables = {"version": 1, "title": f"{self.search.title}: {self.chosen.candidate.name}", **written}
            write_whole(self.folder / "scheduler.toml", tomli_w.dumps(tables).encode())

    def _trained(self) -> pl.DataFrame:
        rows = [
            {
                "candidate": c.name,
                **{k: str(v) for k, v in c.settings.items()},
                **dict(zip(OBJECTIVES, row.tolist(), strict=True)),
            }
            for c, row in zip(self.candidates, self.trained, strict=True)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)


def _describe(judged: JudgedOrder) -> Json:
    """Return an order and its ratios as plain data."""
    return {
        "name": judged.candidate.name,
        "role": judged.role,
        "settings": dict(judged.candidate.settings),
        "keeps": judged.keeps,
        "front": judged.on_front,
        "on": {split: {name: ratio.to_dict() for name, ratio in compared.items()} for split, compared in judged.on.items()},
    }


def run_search(
    search: OrderSearchProblem, out: Path, executor: Executor, *, open_test: bool, report: Callable[[str], None]
) -> SearchResult:
    """Run a search, or resume an interrupted one, in a folder with one writer at a time.

    The result does not depend on the executor. With `open_test`, the chosen order and the known ones are evaluated on the test
    workloads; each use is logged. `report` receives progress messages.
    """
    store, count = Store(out), 0
    with store.writing():
        evaluator = Evaluator(search, TaskRunner(store, executor))
        baseline = evaluator.logs([search.baseline], "train")

        def evaluate(generation: Sequence[OrderCandidate]) -> FloatArray:
            nonlocal count
            means: FloatArray = (evaluator.logs(generation, "train") - baseline).mean(axis=1)
            count += len(generation)
            report(f"{count} of {search.budget.candidates} candidates evaluated on {len(search.splits['train'])} workloads")
            return means

        candidates, logs = sample(search, evaluate, out)
        judged = _judge(search, evaluator, _distinct(candidates, logs, search))
        chosen = _choose(search, evaluator, judged)
        log = out / OPENINGS
        opened = len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
        if open_test:
            opened = _log_opening(out, search, opened, chosen)
            at = None if chosen is None else judged.index(chosen)
            for k, order in enumerate(judged):
                if order is chosen or order.role == "known":
                    baseline, tested = evaluator.logs([search.baseline, order.candidate], "test")
                    judged[k] = replace(order, on={**order.on, "test": ratios(tested, baseline)})
            chosen = None if at is None else judged[at]
        notes = _notes(search, evaluator, opened, open_test)
        result = SearchResult(search, out, judged, chosen, candidates, np.exp(logs), notes, opened)
        result.write()
        return result


def _distinct(candidates: Sequence[OrderCandidate], logs: FloatArray, search: OrderSearchProblem) -> list[OrderCandidate]:
    """Return the best distinct candidates, up to the budget for validation."""
    first = {candidate.key: k for k, candidate in reversed(list(enumerate(candidates)))}
    rows = sorted(first.values())
    values = logs[rows][:, [OBJECTIVES.index(name) for name in search.objectives.minimize]]
    allowed = np.array([satisfies_constraints(search, logs[k]) for k in rows])
    return [candidates[rows[k]] for k in best(values, allowed, search.budget.validated)]


def _judge(search: OrderSearchProblem, evaluator: Evaluator, candidates: Sequence[OrderCandidate]) -> list[JudgedOrder]:
    """Compare the found and the known orders with the baseline."""
    orders = [*candidates, *search.references]
    on: dict[SplitName, list[Ratios]] = {}
    means: dict[SplitName, FloatArray] = {}
    for split in ("train", "validation"):
        logs = evaluator.logs([search.baseline, *orders], split)
        on[split] = [ratios(rows, logs[0]) for rows in logs[1:]]
        means[split] = (logs[1:] - logs[0]).mean(axis=1)
    columns = [OBJECTIVES.index(name) for name in search.objectives.minimize]
    best_of = front(means["validation"][:, columns])
    return [
        JudgedOrder(
            candidate,
            "found" if k < len(candidates) else "known",
            all(satisfies_constraints(search, mean[k]) for mean in means.values()),
            bool(best_of[k]),
            {split: rows[k] for split, rows in on.items()},
        )
        for k, candidate in enumerate(orders)
    ]


def _choose(search: OrderSearchProblem, evaluator: Evaluator, judged: Sequence[JudgedOrder]) -> JudgedOrder | None:
    goal, ranked = search.objectives.minimize[0], _eligible(search, judged)

    def difference(judged: JudgedOrder, other: JudgedOrder) -> Interval:
        logs = evaluator.logs([judged.candidate, other.candidate], "validation")[:, :, OBJECTIVES.index(goal)]
        return mean_interval(logs[0] - logs[1])

    return fairest(ranked, lambda order: order.on["validation"]["d10"].mean, difference) if ranked else None


def _eligible(search: OrderSearchProblem, judged: Sequence[JudgedOrder]) -> list[JudgedOrder]:
    """Return the found orders that satisfy the constraints, by the first objective on the validation workloads."""
    eligible = [order for order in judged if order.role == "found" and order.keeps]
    return sorted(eligible, key=lambda order: order.on["validation"][search.objectives.minimize[0]].mean)


def _log_opening(out: Path, search: OrderSearchProblem, before: int, chosen: JudgedOrder | None) -> int:
    """Log a use of the test workloads before it begins; the entry remains if the search is then interrupted."""
    entry = {
        "opening": before + 1,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "search_sha256": search.sha256,
        "chosen": None if chosen is None else dict(chosen.candidate.settings),
    }
    with (out / OPENINGS).open("a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")
        log.flush()
        os.fsync(log.fileno())
    return before + 1


def _notes(search: OrderSearchProblem, evaluator: Evaluator, opened: int, open_test: bool) -> list[str]:
    """Return caveats that limit the interpretation of the numbers."""
    objectives, notes = search.objectives, []
    weighed = {*objectives.minimize, *objectives.at_most}
    if not weighed & {"longest_wait", "p99_wait"}:
        notes.append(
            "no constraint bounds the waits: orders chosen by slowdown alone let some jobs wait much longer; add "
            "objectives.at_most = { longest_wait = 1.0 }"
        )
    if "d10" in weighed:
        notes.append(
            f"{FLOOR_S:.0f} s is added to D10 and waits before comparison, because ratios to very small values are meaningless"
        )
    if "longest_wait" in weighed and len(search.splits["validation"]) < 10:
        notes.append("the longest wait is that of a single job: fewer than ten validation workloads give a poor estimate of it")
    short = []
    splits: tuple[SplitName, ...] = ("train", "validation")
    for split in splits:
        waits = np.exp(evaluator.logs([search.baseline], split)[0, :, OBJECTIVES.index("longest_wait")]) - FLOOR_S
        for cell, longest in zip(search.splits[split], waits, strict=True):
            if longest > span_s(cell) / 10:
                short.append(f"{split}: {cell.workload.path} (seed {cell.seed})")
    if short:
        notes.append(
            f"{len(short)} workloads are short: under the baseline a job waits for more than a tenth of the workload's span, "
            f"so starvation may go undetected ({short[0]}{', ...' if len(short) > 1 else ''})"
        )
    if open_test and opened > 1:
        notes.append(f"the test workloads have been used {opened} times in this folder: they are no longer independent data")
    if not open_test:
        notes.append(
            "the test workloads have not been used: the order was chosen on the validation workloads, so their numbers are "
            "optimistic"
        )
    return notes
