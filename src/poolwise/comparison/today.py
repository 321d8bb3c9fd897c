"""Comparison with the current system: the runs of a study's `[today]` as runs to compare with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from poolwise.comparison.run_comparison import MOST_RUNS, Comparison
from poolwise.comparison.saved_run import SavedRun
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell
from poolwise.studies.description import read_descriptions


def compare_with_today(result: StudyResult, cells: Sequence[CellResult]) -> Comparison | None:
    """Compare the cells of one setting, one per seed, with today; None if the study has no today, or no job is in both."""
    if not result.study.today:
        return None
    keys = {cell.key for cell in cells}
    chosen = [cell for cell in result.study.cells if cell.key in keys]
    return compare_cells_with_today(chosen, result.study.today, CellStore(result.folder))


def compare_cells_with_today(cells: Sequence[Cell], today: Mapping[str, Cell], store: CellStore) -> Comparison | None:
    """Compare simulated cells of one setting, one per seed, with the corresponding cells of today; None without common jobs."""
    ours = {cell.seed: store.outcomes(cell) for cell in cells}
    current = {cell.seed: store.outcomes(today[cell.key]) for cell in cells}
    if not all((current[seed].finished & ours[seed].finished).any() for seed in current):
        return None
    first = cells[0]
    label = {path.rpartition(".")[2]: str(value) for path, value in first.parameters.items()} or {"run": "the study's"}
    name = str(today[first.key].parameters["today"])
    return Comparison.of(
        [
            SavedRun({"today": name}, store.folder, current, first.warm_up, False, {}),
            SavedRun(label, store.folder, ours, first.warm_up, False, {}),
        ]
    )


def prepend_today(runs: Sequence[SavedRun]) -> list[SavedRun]:
    """Put the run of today before the runs of a study that has one, unless `MOST_RUNS` is reached."""
    first = _today_of(runs[0]) if runs and len(runs) < MOST_RUNS else None
    return [*runs] if first is None else [first, *runs]


def _today_of(run: SavedRun) -> SavedRun | None:
    """Return the run of today with which a study's run is compared, under the same seeds; None if the study has no today."""
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
