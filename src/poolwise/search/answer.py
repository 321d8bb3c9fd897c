"""Result of an order search: found on training workloads, chosen on validation workloads, measured once on test workloads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import tomli_w

from poolwise.arrays import FloatArray
from poolwise.atomic_write import write_whole
from poolwise.code_fingerprint import sources
from poolwise.hashing import Json, pretty
from poolwise.optimize.front import front
from poolwise.runner import Executor, Store
from poolwise.search.evaluator import Evaluator
from poolwise.search.objectives import FLOOR_S, OBJECTIVE_LABELS, OBJECTIVES
from poolwise.search.problem import OrderCandidate, OrderSearchProblem, SplitName
from poolwise.search.sampling import sample, satisfies_constraints
from poolwise.search.significance import Ratios, best, ratios
from poolwise.search.workloads import span_of
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
    chosen : found order with the lowest first objective on the validation workloads that satisfies the constraints, or None
    trained : (n_candidate, 4) ratios of every candidate on the training workloads
    notes : caveats of the numbers
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

    def headline(self) -> str:
        """Return the result in one sentence."""
        if self.chosen is None:
            return f"none of the {len(self.candidates)} candidates satisfies the constraints on the validation workloads"
        split: SplitName = "test" if "test" in self.chosen.on else "validation"
        parts = [f"{OBJECTIVE_LABELS[name]} {ratio} [{ratio.word}]" for name, ratio in self.chosen.on[split].items()]
        return f"{self.chosen.candidate.name}, {split} workloads, relative to {self.search.baseline.name}: {'; '.join(parts)}"

    def frame(self) -> pl.DataFrame:
        """Return one row per order and split, with ratios and the bounds of their intervals."""
        rows: list[dict[str, Any]] = []
        for judged in self.judged:
            for split, found in judged.on.items():
                row: dict[str, Any] = {"order": judged.candidate.name, "role": judged.role, "split": split}
                row |= {"keeps": judged.keeps, "front": judged.on_front}
                for name, ratio in found.items():
                    row |= {name: ratio.mean, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
                rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_dict(self) -> Json:
        """Return plain data, as `poolwise search --json` prints it."""
        return {
            "search": self.search.name,
            "title": self.search.title,
            "headline": self.headline(),
            "baseline": self.search.baseline.name,
            "candidates": len(self.candidates),
            "chosen": None if self.chosen is None else self.chosen.candidate.name,
            "orders": [
                {
                    "name": judged.candidate.name,
                    "role": judged.role,
                    "settings": dict(judged.candidate.settings),
                    "keeps": judged.keeps,
                    "front": judged.on_front,
                    "on": {
                        split: {name: ratio.to_dict() for name, ratio in found.items()} for split, found in judged.on.items()
                    },
                }
                for judged in self.judged
            ],
            "test_opened": self.opened,
            "notes": list(self.notes),
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


def run_search(
    search: OrderSearchProblem, out: Path, executor: Executor, *, open_test: bool, report: Callable[[str], None]
) -> SearchResult:
    """Run a search, or resume an interrupted one.

    Parameters
    ----------
    search
        Resolved search file.
    out
        Folder of the search; one writer at a time.
    executor
        Executor of the evaluations. The result does not depend on it.
    open_test
        True to evaluate the chosen order and the known ones on the test workloads; each use is logged.
    report
        Function that receives progress messages.
    """
    with Store(out).writing():
        evaluator = Evaluator(out, executor, search.objectives.tau / 1e9)
        base = {split: evaluator.logs([search.baseline], search.splits[split])[0] for split in ("train", "validation")}
        count = 0

        def evaluate(generation: Sequence[OrderCandidate]) -> FloatArray:
            nonlocal count
            found: FloatArray = (evaluator.logs(generation, search.splits["train"]) - base["train"]).mean(axis=1)
            count += len(generation)
            report(f"{count} of {search.budget.candidates} candidates evaluated on {len(search.splits['train'])} workloads")
            return found

        candidates, logs = sample(search, evaluate, out)
        found = _distinct(candidates, logs, search)
        judged = _judge(search, evaluator, found)
        chosen = _choose(search, judged)
        opened = _times_opened(out)
        if open_test:
            opened = _log_opening(out, search, opened, chosen)
            judged = [_with_test(one, search, evaluator) if one is chosen or one.role == "known" else one for one in judged]
            chosen = next((one for one in judged if chosen is not None and one.candidate is chosen.candidate), None)
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


def _judge(search: OrderSearchProblem, evaluator: Evaluator, found: Sequence[OrderCandidate]) -> list[JudgedOrder]:
    """Compare the found and the known orders with the baseline."""
    orders = [*found, *search.references]
    on: dict[SplitName, list[Ratios]] = {}
    means: dict[SplitName, FloatArray] = {}
    for split in ("train", "validation"):
        logs = evaluator.logs([search.baseline, *orders], search.splits[split])
        on[split] = [ratios(rows, logs[0]) for rows in logs[1:]]
        means[split] = (logs[1:] - logs[0]).mean(axis=1)
    columns = [OBJECTIVES.index(name) for name in search.objectives.minimize]
    best_of = front(means["validation"][:, columns])
    return [
        JudgedOrder(
            candidate,
            "found" if k < len(found) else "known",
            all(satisfies_constraints(search, mean[k]) for mean in means.values()),
            bool(best_of[k]),
            {split: rows[k] for split, rows in on.items()},
        )
        for k, candidate in enumerate(orders)
    ]


def _choose(search: OrderSearchProblem, judged: Sequence[JudgedOrder]) -> JudgedOrder | None:
    eligible = [one for one in judged if one.role == "found" and one.keeps]
    return min(eligible, key=lambda one: one.on["validation"][search.objectives.minimize[0]].mean, default=None)


def _with_test(one: JudgedOrder, search: OrderSearchProblem, evaluator: Evaluator) -> JudgedOrder:
    logs = evaluator.logs([search.baseline, one.candidate], search.splits["test"])
    return JudgedOrder(one.candidate, one.role, one.keeps, one.on_front, {**one.on, "test": ratios(logs[1], logs[0])})


def _times_opened(out: Path) -> int:
    path = out / OPENINGS
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def _log_opening(out: Path, search: OrderSearchProblem, before: int, chosen: JudgedOrder | None) -> int:
    """Log a use of the test workloads before it begins; the entry stays if the search is then interrupted."""
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
    for split in ("train", "validation"):
        for cell in search.splits[split]:
            longest = float(np.exp(evaluator.logs([search.baseline], [cell])[0, 0, OBJECTIVES.index("longest_wait")])) - FLOOR_S
            span = span_of(cell, objectives.tau / 1e9)
            if longest > span.seconds / 10:
                short.append(f"{split}: {cell.trace.path} (seed {cell.seed})")
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
