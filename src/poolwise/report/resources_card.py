"""Decision card of a study of shared nodes: the best machine and policies, compared with today or the first machine."""

from __future__ import annotations

from collections.abc import Sequence

from poolwise.comparison.waits import PairedRun, PairedWaits
from poolwise.metrics.intervals import mean_interval
from poolwise.presentation.format import format_number
from poolwise.report.decision_card import cost_rows, today_of
from poolwise.report.page import PageTable, TableRow
from poolwise.report.resources import GOAL, Standing, equals
from poolwise.studies import StudyResult


def resources_card(result: StudyResult, ranked: Sequence[Standing], first: str) -> PageTable:
    """Assemble the card.

    The reference is today if the study has a `[today]`. Otherwise it is the best combination on the machine `first`, unless
    that is the recommended machine.
    """
    best, today = ranked[0], result.study.today
    base = next((one for one in ranked if one.machine == first != best.machine), None) if not today else None
    name = next(iter(today.values())).parameters["today"] if today else first if base is not None else ""
    runs: list[PairedRun] = [
        (
            result.outcomes(cell),
            result.today(cell) if base is None else result.outcomes(base.cells[k]),
            result.population(cell),
        )
        for k, cell in enumerate(best.cells)
    ]
    waits = PairedWaits.of(runs)
    rows = []
    if best.machine:
        rows.append(["Machine", best.machine, today_of(result, "machine") if today else first])
    if best.policies:
        rows.append(["Policies", best.policies, "" if base is None else base.policies])
    rows.append(["Certainty", _certainty(ranked), ""])
    rows.append(["Mean bounded slowdown", _mean(best.metric(GOAL)), "" if base is None else _mean(base.metric(GOAL))])
    rows += cost_rows(result, best.cells[0], None if base is None else base.cells[0], str(name) or "today")
    if all(watts == watts for watts in best.watts):
        rows.append(["Mean power", _kilowatts(best), "" if base is None else _kilowatts(base)])
    rows += waits.rows(str(name))
    caption = result.population_text()
    if len(best.cells) > 1:
        caption = f"{caption[:-1]}, in each of {len(best.cells)} seeds."
    measured = sum(int(result.population(cell).sum()) for cell in best.cells)
    if len(waits.recommended) < measured:
        caption += f" Waits cover the {len(waits.recommended):,} of {measured:,} jobs that finish under both."
    if not today:
        caption += " The study has no [today]"
        caption += "." if base is None else f"; the reference is {first} under its best policies."
    width = 3 if name else 2
    header = ["", "recommended", *([str(name)] if name else [])]
    return PageTable("Decision", header, [TableRow([*row, ""][:width]) for row in rows], caption)


def _certainty(ranked: Sequence[Standing]) -> str:
    alike = len(equals(ranked))
    if len(ranked) == 1:
        return "only one combination was simulated"
    if len(ranked[0].cells) == 1:
        return "unknown (one seed)"
    if alike:
        return f"not distinguishable from {alike} of {len(ranked) - 1} others (95 % over {len(ranked[0].cells)} seeds)"
    return f"better than all {len(ranked) - 1} others: the 95 % intervals over {len(ranked[0].cells)} seeds exclude zero"


def _mean(values: Sequence[float]) -> str:
    found = mean_interval(values)
    spread = f" [{format_number(found.low)}, {format_number(found.high)}]" if found.n > 1 else ""
    return f"{format_number(found.mean)}{spread}"


def _kilowatts(one: Standing) -> str:
    return f"{format_number(mean_interval(one.watts).mean / 1000)} kW"
