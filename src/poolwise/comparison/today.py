"""What changes against what runs today: the runs of a study's `[today]` as runs to compare with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from poolwise.comparison.run_comparison import MOST_RUNS, Comparison
from poolwise.comparison.saved_run import SavedRun
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell
from poolwise.studies.description import read_descriptions


def changes(result: StudyResult, cells: Sequence[CellResult]) -> Comparison | None:
    """Compare the cells of one setting, one a seed, with today; None if the study names no today, or no job is in both."""
    if not result.study.today:
        return None
    keys = {cell.key for cell in cells}
    return changes_of([cell for cell in result.study.cells if cell.key in keys], result.study.today, CellStore(result.folder))


def changes_of(cells: Sequence[Cell], today: Mapping[str, Cell], store: CellStore) -> Comparison | None:
    """Compare runs of one setting, one a seed, with those of today in their places, all of which have been simulated."""
    there = {cell.seed: store.outcomes(cell) for cell in cells}
    now = {cell.seed: store.outcomes(today[cell.key]) for cell in cells}
    if not all((now[seed].finished & there[seed].finished).any() for seed in now):
        return None
    first = cells[0]
    label = {path.rpartition(".")[2]: str(value) for path, value in first.parameters.items()} or {"run": "the study's"}
    name = str(today[first.key].parameters["today"])
    return Comparison.of(
        [
            SavedRun({"today": name}, store.folder, now, first.warm_up, False, {}),
            SavedRun(label, store.folder, there, first.warm_up, False, {}),
        ]
    )


def with_today(runs: Sequence[SavedRun]) -> list[SavedRun]:
    """Put what runs today before runs of a study that names it, unless there is no room for one more."""
    first = _today_of(runs[0]) if runs and len(runs) < MOST_RUNS else None
    return [*runs] if first is None else [first, *runs]


def _today_of(run: SavedRun) -> SavedRun | None:
    """What a run of a study is compared with, under the same seeds; None if its study names no today."""
    file = run.source / "provenance.json"
    known = json.loads(file.read_bytes()).get("today") if run.records and file.is_file() else None
    if known is None:
        return None
    described = {record.key: record for record in read_descriptions(file, today=True)}
    records = {seed: described[known["of"][record.key]] for seed, record in run.records.items()}
    store = CellStore(run.source)
    outcomes = {seed: store.load(record.key)[1] for seed, record in records.items()}
    name = str(next(iter(records.values())).parameters["today"])
    return SavedRun({"today": name}, run.source, outcomes, run.warm_up, False, {}, records)
