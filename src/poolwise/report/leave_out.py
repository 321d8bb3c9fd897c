"""Test whether a few jobs decide the recommended size of a study: repeat the study without the largest jobs."""

from __future__ import annotations

from dataclasses import replace

from poolwise.diagnostics.leave_out import LeftOut, largest_jobs, leave_out_few, reason_to_skip
from poolwise.hashing import Json
from poolwise.report.recommendation import answer
from poolwise.report.sweep import Sweep
from poolwise.runner import Executor, TaskRunner
from poolwise.studies import StudyResult
from poolwise.studies.cell_simulation import Cells
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import workload_of
from poolwise.studies.results import measure

FOLDER = "left_out"
"""Folder of the runs without some jobs, inside the folder of the results."""


def leave_out(result: StudyResult, executor: Executor) -> LeftOut | None:
    """Determine the recommended size again without the few largest jobs.

    Returns None if the study recommends no size or has too few jobs. The runs are cached in `FOLDER` of the results.
    """
    sweep = Sweep.of(result)
    recommended = answer(result, sweep)
    if recommended is None or not sweep.x_name.startswith("machine."):
        return None
    study = result.study
    group = largest_jobs(workload_of(study.cells[0]), sweep.x_name)
    if not group.ids:
        return None
    if recommended.at == 0:
        return LeftOut("The size does not depend on a few jobs: it is already the smallest size of the study.")
    obstacle = reason_to_skip({cell.engine for cell in result.cells}, group.jobs, len(result.cells))
    if any(facts.get("resources", {}).get("use") for facts in result.facts.values()):
        obstacle = "machines and policies are ranked together"
    if obstacle is not None:
        return LeftOut(f"Whether a few jobs decide the size was not tested: {obstacle}.")
    store = CellStore(result.folder / FOLDER)
    without_baseline = study.measure.model_copy(update={"baseline": False})

    def again(ids: tuple[int, ...]) -> int | None:
        cells = tuple(cell.without(ids) for cell in study.cells)
        rest = replace(study, cells=cells, measure=without_baseline, memory_machine=None, metrics=(), measures=())
        TaskRunner(store, executor).run(Cells(), rest.runs)
        run = measure(rest, store)
        other = answer(run, Sweep.of(run))
        return None if other is None else other.at

    def describe(at: int | None) -> tuple[str, Json | None]:
        if at is None:
            return "no size is enough", None
        if at == recommended.at:
            return f"the size is the same, {sweep.size(at)}", None
        return f"{sweep.size(at)} is enough instead of {sweep.labels[recommended.at]}", {sweep.x_name: sweep.labels[at]}

    here: int | None = recommended.at
    with store.writing():
        return leave_out_few(group, here, again, describe, "size")
