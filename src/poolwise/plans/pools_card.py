"""Decision card and candidates table of a plan of sizes."""

from __future__ import annotations

from poolwise.arrays import FloatArray
from poolwise.comparison.waits import PairedWaits
from poolwise.errors import InputError
from poolwise.optimize.monotone import Element
from poolwise.plans.candidates import STATE_TEXT, CandidateRuns, CandidateVerdict
from poolwise.plans.prices import Prices
from poolwise.plans.search import Search
from poolwise.plans.sizes import Size
from poolwise.plans.targets import KNOWN, Target
from poolwise.presentation.cost import money_rows
from poolwise.presentation.format import format_number, order_name
from poolwise.presentation.table import Table
from poolwise.studies.cells import Cell
from poolwise.units import parse


def pools_card(runs: CandidateRuns, prices: Prices, found: Search) -> Table | None:
    """Return the recommended sizes, certainty, rejected jobs and cost, compared with today; None without an answer.

    Today must have been simulated with the seeds of the answer.
    """
    best = found.best
    if best is None:
        return None
    verdict, today = found.verdicts[best], runs.today(best)
    rows = [
        [_upper(size.words.noun), str(size.written[k]), "" if today is None else _value_today(runs, today, size)]
        for size, k in zip(runs.sizes, best, strict=True)
    ]
    rows.append(["Queue order", _order(runs.cells(best)[0]), "" if today is None else _order(today)])
    for k, target in enumerate(runs.targets):
        bound = target.text.removeprefix(f"{KNOWN[target.metric].description} of ")
        current = "" if today is None else _metric_today(runs, best, verdict.seeds, target)
        label = f"{_upper(KNOWN[target.metric].description)} (target: {bound})"
        rows.append([label, target.format_value(verdict.values[k]), current])
    rows.append(["Certainty", _certainty(runs, found, verdict), ""])
    rows += money_rows(prices.cost(best), "Cost of the sized parts")
    waits = PairedWaits.of(runs.paired(best, verdict.seeds))
    rows += waits.rows()
    name = "" if today is None else str(today.parameters["today"])
    columns = ["", "recommended", *([name] if name else [])]
    note = _measured_on(runs, verdict, name, len(waits.recommended))
    return Table("Decision", columns, [[*row, ""][: len(columns)] for row in rows], note)


def candidates_table(runs: CandidateRuns, cost: FloatArray, found: Search) -> Table:
    """Return a table of every judged candidate, the cheapest first."""
    order = sorted(found.verdicts, key=lambda element: (float(cost[element]), element))
    columns = [*(size.words.noun for size in runs.sizes), "cost", "verdict", "seeds", "jobs that can never run"]
    columns += [name for t in runs.targets for name in (KNOWN[t.metric].description, "margin to the target")]
    rows = [
        [
            *(str(size.written[k]) for size, k in zip(runs.sizes, element, strict=True)),
            f"{cost[element]:,.0f} $",
            STATE_TEXT[verdict.state],
            str(verdict.seeds),
            f"{verdict.unfinished:,}",
            *_measured(runs, verdict),
        ]
        for element, verdict in ((element, found.verdicts[element]) for element in order)
    ]
    level = f" [{100 * runs.certainty.level:g} % over {runs.certainty.over}]" if runs.certainty.over != "nothing" else ""
    note = f"All simulated candidates; the answer is in bold. A negative margin{level} misses the target."
    return Table("Candidates", columns, rows, note, None if found.best is None else order.index(found.best))


def _measured(runs: CandidateRuns, verdict: CandidateVerdict) -> list[str]:
    if verdict.unfinished:
        return ["-", "-"] * len(runs.targets)
    cells = []
    for target, value, margin in zip(runs.targets, verdict.values, verdict.margins, strict=True):
        spread = "" if margin.low == margin.high else f" [{format_number(margin.low)}, {format_number(margin.high)}]"
        cells += [target.format_value(value), f"{format_number(margin.mean)}{spread}"]
    return cells


def _certainty(runs: CandidateRuns, found: Search, verdict: CandidateVerdict) -> str:
    level, over = f"{100 * runs.certainty.level:g} %", runs.certainty.over
    without = sum(margin.low == margin.high for margin in verdict.margins) if over == "jobs" else 0
    if over == "nothing" or without == len(verdict.margins):
        text = "the means decide, without intervals"
    elif without:
        text = (
            f"the {level} intervals over the jobs clear their targets; metrics without an interval are decided by their value"
        )
    elif over == "jobs":
        text = f"the {level} interval of each margin over the jobs clears the target"
    else:
        text = f"the {level} interval of each margin over {verdict.seeds} seeds clears the target"
    return text if found.open is None else f"{text}; whether less is enough is undecided"


def _measured_on(runs: CandidateRuns, verdict: CandidateVerdict, name: str, jobs: int) -> str:
    relative = any(target.relative for target in runs.targets)
    finishers = "the largest candidate and the reference finish" if relative else "the largest candidate finishes"
    seeds = f"with {verdict.seeds} seeds" if verdict.seeds > 1 else "with one seed"
    text = (
        f"Targets are measured on the jobs after a warm-up of {runs.cells(runs.largest)[0].warm_up:,} that {finishers}, "
        f"{seeds}: {int(runs.population(0).sum()):,} jobs of the first seed"
    )
    if name:
        return f"{text}. Waits cover the {jobs:,} of these jobs, over all seeds, that also finish today."
    return f"{text}. The plan has no [today]; add one to compare the answer with your current system."


def _metric_today(runs: CandidateRuns, element: Element, seeds: int, target: Target) -> str:
    """Format the metric of a target today, which is comparable only if today's machine runs the same jobs."""
    value = runs.value_today(element, target.metric, seeds)
    return "not comparable (other jobs)" if value is None else target.format_value(value)


def _value_today(runs: CandidateRuns, today: Cell, size: Size) -> str:
    """Format the value of a size in today's machine, in the unit of its price."""
    document = runs.document.copy()
    document.tables["machine"] = today.machine_tables
    try:
        return f"{parse(document.get(size.key), size.dimension) / size.per_unit:,.6g} {size.unit}".strip()
    except (InputError, ValueError):
        return "none"


def _order(cell: Cell) -> str:
    return order_name(str(cell.scheduler.order or cell.scheduler.kind))


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
