"""Decision cards of studies: the recommendation, certainty, rejected jobs and cost, compared with today or another machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from poolwise.catalog import PREFIX
from poolwise.comparison.compare import compare_with_today
from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.sentences import verdict_text
from poolwise.comparison.waits import PairedWaits
from poolwise.errors import InputError
from poolwise.files.cost_items import POWER, CostItem, cost_items
from poolwise.files.document import Document
from poolwise.metrics.intervals import mean_interval
from poolwise.metrics.slowdown import wait_s
from poolwise.presentation.answer import Certainty, DecisionCard
from poolwise.presentation.cost import Cost, CostLine, money_rows
from poolwise.presentation.format import format_number, order_name
from poolwise.quantities import format_time
from poolwise.report import sentences
from poolwise.report.recommendation import Recommendation
from poolwise.report.resources import GOAL, CombinationResult, equals, format_interval
from poolwise.report.sweep import Sweep, value_label
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.cells import Cell
from poolwise.studies.results import watts_and_dollars


def cost_of(result: StudyResult, cell: CellResult, other: CellResult | None = None) -> Cost | None:
    """Price the machine of a run, and that of today or of an `other` run; return None if the study has no prices."""
    here = result.simulated(cell)
    if here.costs.prices is None:
        return None
    reference, watts = result.study.today.get(cell.key), 0.0
    if other is not None:
        reference, watts = result.simulated(other), other.watts
    elif reference is not None:
        watts = watts_and_dollars(result.facts[reference.key], reference)[0]
    recommended = cost_items(here.costs.prices, here.machine, cell.watts)
    current = () if reference is None else cost_items(here.costs.prices, reference.machine, watts)
    amounts = [{item.name: item.amount for item in items} for items in (recommended, current)]
    items = {item.name: item for item in (*recommended, *current)}
    lines = (_line(item, amounts[0].get(name, 0.0), amounts[1].get(name, 0.0)) for name, item in items.items())
    return Cost(tuple(lines), reference is not None)


def _line(item: CostItem, recommended: float, current: float) -> CostLine:
    return CostLine(item.name, item.unit, recommended, current, (item.least, item.likely, item.most))


def study_decision(result: StudyResult, sweep: Sweep, recommendation: Recommendation) -> DecisionCard:
    """Return the recommended order and size; the reference is today if the study has a `[today]`."""
    cells = sweep.cells[recommendation.series, recommendation.at]
    waits = PairedWaits.of((result.outcomes(cell), result.today(cell), result.population(cell)) for cell in cells)
    today = result.study.today.get(cells[0].key)
    if sweep.choice == "order":
        choice = [["Queue order", recommendation.series, today_of(today, "scheduler.order")]]
    else:
        choice = [["Scheduler settings", recommendation.series, "" if today is None else "unchanged"]]
    if sweep.x_name:
        choice.append(["Size", sweep.amount(recommendation.at), _size_today(today, sweep)])
    effects = [*cost_rows(result, cells[0]), *waits.rows()]
    if today is None and result.study.measure.baseline:
        label = "Largest wait added to any job, compared with FCFS without backfilling"
        effects.append([label, _largest_added_wait(result, sweep, recommendation)])
    note = population_of(result, cells, waits, "also finish today")
    note += "" if today else " The study has no [today]; add one to compare the recommendation with your current system."
    note += price_note(cells[0])
    name = "" if today is None else str(today.parameters["today"])
    return DecisionCard(
        choice, effects, sentences.certainty(recommendation), name, note, certainty_of=f"Certainty of the {sweep.choice}"
    )


def population_of(result: StudyResult, cells: Sequence[CellResult], waits: PairedWaits, condition: str) -> str:
    """State which jobs are measured in the cells of a setting, one cell per seed, and how many of them the waits cover."""
    text = result.population_text()
    if len(cells) > 1:
        text = f"{text[:-1]}, in each of {len(cells)} seeds."
    measured = sum(int(result.population(cell).sum()) for cell in cells)
    if len(waits.recommended) < measured:
        text += f" Waits cover the {len(waits.recommended):,} of {measured:,} jobs that {condition}."
    return text


def today_of(today: Cell | None, path: str) -> str:
    """Return the value of a varied parameter in a run of today's configuration; "" without such a run."""
    if today is None:
        return ""
    if path == "scheduler.order":
        return order_name(str(today.scheduler.order or today.scheduler.kind))
    return str(today.parameters.get(path, today.machine.name)).removeprefix(PREFIX)


def _size_today(today: Cell | None, sweep: Sweep) -> str:
    """Return the size of the machine in a run of today's configuration, or else the result of `today_of`."""
    if today is not None and sweep.noun.counted:
        with suppress(InputError):
            return sweep.noun.phrase(str(Document(Path(), {"machine": today.machine_tables}).get(sweep.x_name)))
    return today_of(today, sweep.x_name)


def policies_today(result: StudyResult, today: Cell) -> str:
    """Return the values of the varied parameters of the scheduler in a run of today's configuration."""
    paths = [path for path, values in result.study.vary.items() if path.startswith("scheduler") and len(values) > 1]
    return ", ".join(_scheduler_value(today, path) for path in paths)


def _scheduler_value(cell: Cell, path: str) -> str:
    if path in cell.parameters:
        return value_label(path, cell.parameters[path])
    order = order_name(str(cell.scheduler.order or cell.scheduler.kind))
    if path == "scheduler.order":
        return order
    if path == "scheduler":
        return f"{order}, {cell.scheduler.backfill}" if cell.scheduler.order else order
    return str(getattr(cell.scheduler, path.removeprefix("scheduler."), None) or "none")


def _slowdown_rows(changes: Comparison, name: str) -> list[list[str]]:
    """Return the slowdown under the recommendation and today, over the same jobs, and the difference with its verdict."""
    for difference in changes.differences:
        if difference.metric == GOAL:
            text = f"{format_interval(difference.interval, '+')}; {verdict_text(difference)}"
            values = format_number(difference.value), format_number(difference.first)
            return [["Mean bounded slowdown", *values], [f"Difference in slowdown from {name}", text, ""]]
    return []


def _largest_added_wait(result: StudyResult, sweep: Sweep, recommendation: Recommendation) -> str:
    largest = 0.0
    for cell in sweep.cells[recommendation.series, recommendation.at]:
        outcomes, fcfs = result.outcomes(cell), result.baseline(cell)
        both = result.population(cell) & fcfs.finished
        largest = max(largest, float((wait_s(outcomes) - wait_s(fcfs))[both].max(initial=0.0)))
    return format_time(largest)


def cost_rows(result: StudyResult, cell: CellResult, other: CellResult | None = None, name: str = "today") -> list[list[str]]:
    """Return the cost and the savings of a machine, by the study's price list or by prices in the machine file.

    The reference is today, or an `other` run with its name. A study without prices has no such rows.
    """
    cost = cost_of(result, cell, other)
    if cost is not None:
        years = "" if POWER not in [line.name for line in cost.lines] else f", with power over {_years(result, cell):g} years"
        return money_rows(cost, f"Cost of the machine{years}", name)
    today = result.study.today.get(cell.key)
    price = math.nan if today is None else watts_and_dollars(result.facts[today.key], today)[1]
    price = price if other is None else other.dollars
    if not math.isfinite(cell.dollars):
        return []
    rows = [["Price of the machine", f"{cell.dollars:,.0f} $", f"{price:,.0f} $" if math.isfinite(price) else "unknown"]]
    if not math.isfinite(price):
        return rows
    label = f"Savings compared with {name}" if price >= cell.dollars else f"Added cost compared with {name}"
    return [*rows, [label, f"{abs(price - cell.dollars):,.0f} $", ""]]


def price_note(cell: CellResult) -> str:
    """State how to add prices to a study without them."""
    return (
        "" if math.isfinite(cell.dollars) else ' The study has no prices; set prices = "FILE" to a price list to add the cost.'
    )


def _years(result: StudyResult, cell: CellResult) -> float:
    prices = result.simulated(cell).costs.prices
    return 0.0 if prices is None else prices.years


def resources_decision(result: StudyResult, ranked: Sequence[CombinationResult], first: str) -> DecisionCard:
    """Return the best machine and policies.

    The reference is today if the study has a `[today]`. Otherwise it is the best combination on the machine `first`, unless
    that is the recommended machine.
    """
    best = ranked[0]
    today = result.study.today.get(best.cells[0].key)
    base = None if today else next((other for other in ranked if other.machine == first != best.machine), None)
    name = str(today.parameters["today"]) if today else first if base is not None else ""
    others = [result.today(cell) if base is None else result.outcomes(base.cells[k]) for k, cell in enumerate(best.cells)]
    paired = zip(best.cells, others, strict=True)
    waits = PairedWaits.of((result.outcomes(cell), other, result.population(cell)) for cell, other in paired)
    changes = compare_with_today(result, best.cells)
    choice, effects = [], [["Mean bounded slowdown", _mean(best), "" if base is None else _mean(base)]]
    if changes is not None:
        effects = _slowdown_rows(changes, name)
    if best.machine:
        choice.append(["Machine", best.machine, today_of(today, "machine") if today else first])
    if best.policies:
        policies = policies_today(result, today) if today else "" if base is None else base.policies
        choice.append(["Policies", best.policies, policies])
    effects += cost_rows(result, best.cells[0], None if base is None else base.cells[0], name or "today")
    if all(watts == watts for watts in best.watts):
        effects.append(["Mean power", _kilowatts(best), "" if base is None else _kilowatts(base)])
    effects += waits.rows(name)
    note = population_of(result, best.cells, waits, "finish under both")
    if not today:
        note += " The study has no [today]"
        note += "." if base is None else f"; the reference is {first} under its best policies."
    note += price_note(best.cells[0])
    return DecisionCard(choice, effects, _certainty(ranked), name, note)


def _certainty(ranked: Sequence[CombinationResult]) -> Certainty:
    alike, others, seeds = len(equals(ranked)), len(ranked) - 1, len(ranked[0].cells)
    if not others:
        return Certainty("unknown", remark="only one combination was simulated")
    behind = ranked[1].behind(ranked[0])
    if behind.n < 2:
        return Certainty("unknown", samples=1, over="seeds", remark="unknown (one seed)")
    over = "seeds" if seeds > 1 else "jobs"
    apart = Certainty("better", behind.level, behind.n, over, (behind.low, behind.high), better_than=f"all {others} others")
    return replace(apart, kind="alike", better_than="", alike=f"{alike} of {others} others") if alike else apart


def _mean(result: CombinationResult) -> str:
    return format_interval(mean_interval(result.metric(GOAL)))


def _kilowatts(result: CombinationResult) -> str:
    return f"{format_number(mean_interval(result.watts).mean / 1000)} kW"
