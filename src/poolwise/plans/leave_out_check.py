"""Test whether a few jobs decide the answer of a plan: repeat the search without the largest jobs."""

from __future__ import annotations

from poolwise.arrays import FloatArray
from poolwise.diagnostics.leave_out import LeftOut, largest_jobs, leave_out_few, reason_to_skip
from poolwise.hashing import Json, canonical
from poolwise.optimize.monotone import Element
from poolwise.plans.candidates import CandidateRuns
from poolwise.plans.search import Search, search
from poolwise.studies.cells import workload_of


def leave_out(runs: CandidateRuns, cost: FloatArray, searched: Search) -> tuple[LeftOut, ...]:
    """Repeat the search without the few largest jobs, for each sized resource; return () if no few jobs stand out.

    Cached runs are reused. If the check would take too long, `LeftOut.text` states that.
    """
    cells = runs.cells(runs.largest)[: runs.certainty.seeds[0]]
    workload = workload_of(cells[0])
    groups = {group.what: group for group in (largest_jobs(workload, size.key) for size in runs.sizes) if group.ids}
    if not groups:
        return ()
    if searched.best == (0,) * cost.ndim:
        return (LeftOut("The answer does not depend on a few jobs: it is already the cheapest candidate."),)
    engines = {str((runs.store.facts(cell) or {}).get("engine")) for cell in runs.simulated.values()}
    obstacle = reason_to_skip(engines, len(workload), len(runs.simulated))
    if len({canonical(cell.workload.content()) for cell in cells}) > 1:
        obstacle = "each seed draws its own jobs"
    if obstacle is not None:
        return (LeftOut(f"Whether a few jobs decide the answer was not tested: {obstacle}."),)

    def again(ids: tuple[int, ...]) -> Element | None:
        return search(runs.without(ids), cost, 0.0, 0).best

    def describe(element: Element | None) -> tuple[str, Json | None]:
        if element == searched.best:
            return "the answer is the same", None
        if element is None:
            return "no candidate is shown to meet the targets", None
        sizes = {size.key: size.written[k] for size, k in zip(runs.sizes, element, strict=True)}
        instead = "" if searched.best is None else f" instead of {runs.label(searched.best)}"
        return f"{runs.label(element)} is enough{instead}", {"sizes": sizes, "cost_dollars": float(cost[element])}

    return tuple(leave_out_few(group, searched.best, again, describe, "answer") for group in groups.values())
