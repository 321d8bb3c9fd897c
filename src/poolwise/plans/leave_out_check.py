"""Whether a few jobs decide which sizes a plan chooses: the search again, without the jobs that ask for the most."""

from __future__ import annotations

from poolwise.arrays import FloatArray
from poolwise.diagnostics.leave_out import LeftOut, fewest, largest_jobs, reason_to_skip
from poolwise.hashing import Json, canonical
from poolwise.optimize.monotone import Element
from poolwise.plans.candidates import CandidateRuns
from poolwise.plans.search import Search, search
from poolwise.studies.cells import workload_of


def leave_out(trials: CandidateRuns, cost: FloatArray, found: Search) -> tuple[LeftOut, ...]:
    """Look for the answer again without the few largest jobs, by each resource that is sized; empty where none are a few.

    What the search has run is not run again. `LeftOut.text` says so where the trials would take too long.
    """
    cells = trials.cells(trials.largest)[: trials.certainty.seeds[0]]
    workload = workload_of(cells[0])
    groups = {group.what: group for group in (largest_jobs(workload, size.key) for size in trials.sizes) if group.ids}
    if not groups:
        return ()
    if found.best == (0,) * cost.ndim:
        return (LeftOut("No few jobs decide the answer: nothing cheaper may be chosen."),)
    engines = {str((trials.store.facts(cell) or {}).get("engine")) for cell in trials.simulated.values()}
    why_not = reason_to_skip(engines, len(workload), len(trials.simulated))
    if len({canonical(cell.trace.content()) for cell in cells}) > 1:
        why_not = "each seed draws its own jobs"
    if why_not is not None:
        return (LeftOut(f"Whether a few jobs decide the answer was not tried: {why_not}."),)

    def again(ids: tuple[int, ...]) -> Element | None:
        return search(trials.without(ids), cost, 0.0, 0).best

    told = []
    for group in groups.values():
        if not group.counts:
            text = f"More than {len(group.ids)} jobs ask for the most {group.what}: no few of them decide the answer."
            told.append(LeftOut(text, what=group.what))
            continue
        changed = fewest(group, found.best, again)
        if changed is None:
            text = f"{group.text(group.counts[-1])}; without them the answer is the same."
            told.append(LeftOut(text, tried=True, what=group.what))
            continue
        count, then = changed
        text = f"{group.text(count)}; without them {_instead(trials, then, found.best)}."
        told.append(LeftOut(text, True, group.ids[:count], group.what, _content(trials, cost, then)))
    return tuple(told)


def _instead(trials: CandidateRuns, then: Element | None, best: Element | None) -> str:
    if then is None:
        return "no candidate is shown to keep the targets"
    return f"{trials.label(then)} would do{'' if best is None else f' instead of {trials.label(best)}'}"


def _content(trials: CandidateRuns, cost: FloatArray, element: Element | None) -> Json | None:
    if element is None:
        return None
    sizes = {size.key: size.written[k] for size, k in zip(trials.sizes, element, strict=True)}
    return {"sizes": sizes, "cost_dollars": float(cost[element])}
