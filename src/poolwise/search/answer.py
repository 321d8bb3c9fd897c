"""The answer of a search: what was found on the training workloads, chosen on others, and shown on the test once."""

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
from poolwise.search.objectives import FARES, FLOOR_S, WORDS
from poolwise.search.problem import OrderCandidate, OrderSearchProblem, SplitName
from poolwise.search.sampling import keeps, sample
from poolwise.search.significance import Ratios, best, ratios
from poolwise.search.workloads import span_of
from poolwise.version import __version__

OPENINGS = "test-openings.jsonl"
"""Log of the times that the test was opened."""


@dataclass(frozen=True, eq=False)
class Judged:
    """An order and its ratios to the baseline on each split that was tried.

    Attributes
    ----------
    role : "found" by the search, or "known": given by the file
    keeps : whether its means keep the constraints on training and validation workloads
    on_front : whether it is on the front of what was tried on the validation workloads
    """

    candidate: OrderCandidate
    role: str
    keeps: bool
    on_front: bool
    on: Mapping[SplitName, Ratios]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A search and its answer.

    Attributes
    ----------
    judged : the orders that were tried on the validation workloads, those found first
    chosen : the one found that is least in the first objective there among those that keep the constraints; None if none does
    trained : every candidate's (4,) ratios on the training workloads
    notes : what a reader must know beside the numbers
    opened : how many times the test has been opened for this folder, this time included; 0 if never
    """

    search: OrderSearchProblem
    folder: Path
    judged: Sequence[Judged]
    chosen: Judged | None
    candidates: Sequence[OrderCandidate]
    trained: FloatArray
    notes: Sequence[str]
    opened: int

    def headline(self) -> str:
        """The answer in a sentence."""
        if self.chosen is None:
            return f"no candidate keeps the constraints on the validation workloads: {len(self.candidates)} were tried"
        split: SplitName = "test" if "test" in self.chosen.on else "validation"
        parts = [f"{WORDS[name]} {ratio} {_said(ratio.word)}" for name, ratio in self.chosen.on[split].items()]
        return f"{self.chosen.candidate.name}, on the {split} workloads, times {self.search.baseline.name}: {'; '.join(parts)}"

    def frame(self) -> pl.DataFrame:
        """One row for each order and split: ratios and the bounds of their intervals."""
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
        """Plain data, as `poolwise search --json` prints it."""
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
        """Where the answer comes from: version, hashes of all inputs."""
        return {
            "poolwise": __version__,
            "search": self.search.name,
            "search_sha256": self.search.sha256,
            "sources_sha256": sources(),
            "workloads": {split: [cell.key for cell in cells] for split, cells in self.search.splits.items()},
        }

    def write(self) -> None:
        """Write search.json, orders.csv, candidates.csv, provenance.json and, where one was chosen, scheduler.toml."""
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
            {"candidate": c.name, **{k: str(v) for k, v in c.settings.items()}, **dict(zip(FARES, row.tolist(), strict=True))}
            for c, row in zip(self.candidates, self.trained, strict=True)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)


def run_search(
    search: OrderSearchProblem, out: Path, executor: Executor, *, open_test: bool, tell: Callable[[str], None]
) -> SearchResult:
    """Search, or go on with a search that was stopped.

    Parameters
    ----------
    out
        Folder; one writer at a time.
    executor
        Tries candidates on workloads. The answer does not depend on it.
    open_test
        Try what was chosen, and what it is compared with, on the test workloads; each time is logged.
    """
    with Store(out).writing():
        trying = Evaluator(out, executor, search.objectives.tau / 1e9)
        base = {split: trying.logs([search.baseline], search.splits[split])[0] for split in ("train", "validation")}
        count = 0

        def fare(generation: Sequence[OrderCandidate]) -> FloatArray:
            nonlocal count
            found: FloatArray = (trying.logs(generation, search.splits["train"]) - base["train"]).mean(axis=1)
            count += len(generation)
            tell(f"{count} of {search.budget.candidates} candidates tried on {len(search.splits['train'])} workloads")
            return found

        candidates, logs = sample(search, fare, out)
        found = _distinct(candidates, logs, search)
        judged = _judge(search, trying, found)
        chosen = _choose(search, judged)
        opened = _times_opened(out)
        if open_test:
            opened = _log_opening(out, search, opened, chosen)
            judged = [_opened(one, search, trying) if one is chosen or one.role == "known" else one for one in judged]
            chosen = next((one for one in judged if chosen is not None and one.candidate is chosen.candidate), None)
        notes = _notes(search, trying, opened, open_test)
        result = SearchResult(search, out, judged, chosen, candidates, np.exp(logs), notes, opened)
        result.write()
        return result


def _distinct(candidates: Sequence[OrderCandidate], logs: FloatArray, search: OrderSearchProblem) -> list[OrderCandidate]:
    """The best of the candidates, each once, as many as the budget says."""
    first = {candidate.key: k for k, candidate in reversed(list(enumerate(candidates)))}
    rows = sorted(first.values())
    values = logs[rows][:, [FARES.index(name) for name in search.objectives.minimize]]
    allowed = np.array([keeps(search, logs[k]) for k in rows])
    return [candidates[rows[k]] for k in best(values, allowed, search.budget.validated)]


def _judge(search: OrderSearchProblem, trying: Evaluator, found: Sequence[OrderCandidate]) -> list[Judged]:
    """Compare what was found, and what is known, with the baseline."""
    everyone = [*found, *search.beside]
    on: dict[SplitName, list[Ratios]] = {}
    means: dict[SplitName, FloatArray] = {}
    for split in ("train", "validation"):
        logs = trying.logs([search.baseline, *everyone], search.splits[split])
        on[split] = [ratios(rows, logs[0]) for rows in logs[1:]]
        means[split] = (logs[1:] - logs[0]).mean(axis=1)
    columns = [FARES.index(name) for name in search.objectives.minimize]
    best_of = front(means["validation"][:, columns])
    return [
        Judged(
            candidate,
            "found" if k < len(found) else "known",
            all(keeps(search, mean[k]) for mean in means.values()),
            bool(best_of[k]),
            {split: rows[k] for split, rows in on.items()},
        )
        for k, candidate in enumerate(everyone)
    ]


def _choose(search: OrderSearchProblem, judged: Sequence[Judged]) -> Judged | None:
    able = [one for one in judged if one.role == "found" and one.keeps]
    return min(able, key=lambda one: one.on["validation"][search.objectives.minimize[0]].mean, default=None)


def _opened(one: Judged, search: OrderSearchProblem, trying: Evaluator) -> Judged:
    logs = trying.logs([search.baseline, one.candidate], search.splits["test"])
    return Judged(one.candidate, one.role, one.keeps, one.on_front, {**one.on, "test": ratios(logs[1], logs[0])})


def _times_opened(out: Path) -> int:
    path = out / OPENINGS
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def _log_opening(out: Path, search: OrderSearchProblem, before: int, chosen: Judged | None) -> int:
    """Note that the test is opened, before it is; what is noted is not taken back where the search stops then."""
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


def _said(word: str) -> str:
    return f"[{word}]"


def _notes(search: OrderSearchProblem, trying: Evaluator, opened: int, open_test: bool) -> list[str]:
    """What speaks against taking the numbers for more than they are."""
    objectives, notes = search.objectives, []
    weighed = {*objectives.minimize, *objectives.at_most}
    if not weighed & {"longest_wait", "p99_wait"}:
        notes.append(
            "nothing bounds the waits: orders that are chosen by slowdown alone let some jobs wait much longer "
            "(objectives.at_most = { longest_wait = 1.0 })"
        )
    if "d10" in weighed:
        notes.append(
            f"D10 and waits are compared with {FLOOR_S:.0f} s added to each, since ratios to almost nothing say nothing"
        )
    if "longest_wait" in weighed and len(search.splits["validation"]) < 10:
        notes.append("the longest wait is that of one job: fewer than ten validation workloads say little about it")
    short = []
    for split in ("train", "validation"):
        for cell in search.splits[split]:
            longest = float(np.exp(trying.logs([search.baseline], [cell])[0, 0, FARES.index("longest_wait")])) - FLOOR_S
            span = span_of(cell, objectives.tau / 1e9)
            if longest > span.seconds / 10:
                short.append(f"{split}: {cell.trace.path} (seed {cell.seed})")
    if short:
        notes.append(
            f"{len(short)} workloads are short: under the baseline a job waits for more than a tenth of their span, "
            f"so starvation may not show ({short[0]}{', ...' if len(short) > 1 else ''})"
        )
    if open_test and opened > 1:
        notes.append(
            f"the test has been opened {opened} times in this folder: what it says now is no longer of fresh workloads"
        )
    if not open_test:
        notes.append("the test workloads are still closed: numbers of validation workloads were chosen by, and flatter")
    return notes
