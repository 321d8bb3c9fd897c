"""The decision card of a plan of sizes, and its candidates in words."""

from __future__ import annotations

from poolwise.arrays import FloatArray
from poolwise.comparison.waits import PairedWaits
from poolwise.errors import InputError
from poolwise.optimize.monotone import Element
from poolwise.plans.candidates import CandidateRuns, Verdict
from poolwise.plans.prices import Prices
from poolwise.plans.search import Search
from poolwise.plans.sizes import Size
from poolwise.plans.targets import KNOWN, Target
from poolwise.presentation.cost import money_rows
from poolwise.presentation.format import order_name, spoken_number
from poolwise.presentation.table import Table
from poolwise.studies.cells import Cell
from poolwise.units import parse


def pools_card(trials: CandidateRuns, prices: Prices, found: Search) -> Table | None:
    """What to take, how sure that is, who is turned away, what it costs, and today beside it; None without an answer.

    What runs today must have been simulated under the seeds of the answer.
    """
    best = found.best
    if best is None:
        return None
    verdict, today = found.verdicts[best], trials.today(best)
    rows = [
        [_upper(size.words.noun), str(size.written[k]), "" if today is None else _written(trials, today, size)]
        for size, k in zip(trials.sizes, best, strict=True)
    ]
    rows.append(["Queue order", _order(trials.cells(best)[0]), "" if today is None else _order(today)])
    for k, target in enumerate(trials.targets):
        bound = target.words.removeprefix(f"{KNOWN[target.metric].description} of ")
        now = "" if today is None else _today_said(trials, best, verdict.seeds, target)
        rows.append([f"{_upper(KNOWN[target.metric].description)} (target: {bound})", target.said(verdict.values[k]), now])
    rows.append(["How sure that is", _certainty(trials, found, verdict), ""])
    rows += money_rows(prices.cost(best), "Cost of what may be chosen")
    waits = PairedWaits.of(trials.paired(best, verdict.seeds))
    rows += waits.rows()
    name = "" if today is None else str(today.parameters["today"])
    columns = ["", "recommended", *([name] if name else [])]
    note = _measured_on(trials, verdict, name, len(waits.then))
    return Table("Decision", columns, [[*row, ""][: len(columns)] for row in rows], note)


def candidates_table(trials: CandidateRuns, cost: FloatArray, found: Search) -> Table:
    """Every candidate that was judged, the cheapest first."""
    order = sorted(found.verdicts, key=lambda element: (float(cost[element]), element))
    columns = [*(size.words.noun for size in trials.sizes), "cost", "verdict", "seeds", "jobs that can never run"]
    columns += [name for t in trials.targets for name in (KNOWN[t.metric].description, "inside the target by")]
    rows = [
        [
            *(str(size.written[k]) for size, k in zip(trials.sizes, element, strict=True)),
            f"{cost[element]:,.0f} $",
            verdict.state,
            str(verdict.seeds),
            f"{verdict.unfinished:,}",
            *_measured(trials, verdict),
        ]
        for element, verdict in ((element, found.verdicts[element]) for element in order)
    ]
    level = f" [{100 * trials.certainty.level:g} % over {trials.certainty.over}]" if trials.certainty.over != "nothing" else ""
    note = f"Those that were simulated; the answer is set in bold. Margins{level} below zero miss the target."
    return Table("Candidates", columns, rows, note, None if found.best is None else order.index(found.best))


def _measured(trials: CandidateRuns, verdict: Verdict) -> list[str]:
    if verdict.unfinished:
        return ["-", "-"] * len(trials.targets)
    cells = []
    for target, value, margin in zip(trials.targets, verdict.values, verdict.margins, strict=True):
        spread = "" if margin.low == margin.high else f" [{spoken_number(margin.low)}, {spoken_number(margin.high)}]"
        cells += [target.said(value), f"{spoken_number(margin.mean)}{spread}"]
    return cells


def _certainty(trials: CandidateRuns, found: Search, verdict: Verdict) -> str:
    level, over = f"{100 * trials.certainty.level:g} %", trials.certainty.over
    without = sum(margin.low == margin.high for margin in verdict.margins) if over == "jobs" else 0
    if over == "nothing" or without == len(verdict.margins):
        said = "the means decide, without intervals"
    elif without:
        said = f"the {level} intervals over the jobs clear their targets; of metrics without one the value decides"
    elif over == "jobs":
        said = f"the {level} interval of each margin over the jobs clears the target"
    else:
        said = f"the {level} interval of each margin over {verdict.seeds} seeds clears the target"
    return said if found.open is None else f"{said}; whether less is enough is undecided"


def _measured_on(trials: CandidateRuns, verdict: Verdict, name: str, jobs: int) -> str:
    relative = any(target.relative for target in trials.targets)
    who = "the largest candidate and the reference finish" if relative else "the largest candidate finishes"
    seeds = f"over {verdict.seeds} seeds" if verdict.seeds > 1 else "under one seed"
    said = (
        f"Targets are measured on the jobs after a warm-up of {trials.cells(trials.largest)[0].warm_up:,} that {who}, {seeds}: "
        f"{int(trials.population(0).sum()):,} of the first"
    )
    if name:
        return f"{said}. Waits are of the {jobs:,} jobs of all seeds that finish today too."
    return f"{said}. The plan names no [today] to compare with; add one to see what changes."


def _today_said(trials: CandidateRuns, element: Element, seeds: int, target: Target) -> str:
    """The metric of a target as it is today; only where today's machine runs the same jobs is it the same metric."""
    value = trials.value_today(element, target.metric, seeds)
    return "not of the same jobs" if value is None else target.said(value)


def _written(trials: CandidateRuns, today: Cell, size: Size) -> str:
    """What today's machine has of a size, in the unit of its price."""
    there = trials.document.copy()
    there.tables["machine"] = today.machine_tables
    try:
        return f"{parse(there.get(size.key), size.dimension) / size.per_unit:,.6g} {size.unit}".strip()
    except (InputError, ValueError):
        return "has none"


def _order(cell: Cell) -> str:
    return order_name(str(cell.scheduler.order or cell.scheduler.kind))


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
