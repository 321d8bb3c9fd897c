"""The decision card of a study of shared nodes: the best machine and policies, and beside it today or the first machine."""

from __future__ import annotations

from collections.abc import Sequence

from poolwise.comparison.waits import PairedRun, PairedWaits
from poolwise.metrics.intervals import mean_interval
from poolwise.presentation.format import spoken_number
from poolwise.report.decision_card import money, today_of
from poolwise.report.page import PageTable, TableRow
from poolwise.report.resources import GOAL, Standing, equals
from poolwise.studies import StudyResult


def resources_card(result: StudyResult, ranked: Sequence[Standing], first: str) -> PageTable:
    """Put the card together.

    Beside the recommendation stands what runs today where the study names it; else the best combination on the machine that
    the study names `first`, where that is not the recommended one.
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
    rows.append(["How sure that is", _certainty(ranked), ""])
    rows.append(["Mean bounded slowdown", _mean(best.metric(GOAL)), "" if base is None else _mean(base.metric(GOAL))])
    rows += money(result, best.cells[0], None if base is None else base.cells[0], str(name) or "today")
    if all(watts == watts for watts in best.watts):
        rows.append(["Mean power", _kilowatts(best), "" if base is None else _kilowatts(base)])
    rows += waits.rows(str(name))
    caption = result.population_text()
    if len(best.cells) > 1:
        caption = f"{caption[:-1]}, in each of {len(best.cells)} seeds."
    measured = sum(int(result.population(cell).sum()) for cell in best.cells)
    if len(waits.then) < measured:
        caption += f" Waits are of the {len(waits.then):,} of all {measured:,} that finish under both."
    if not today:
        caption += " The study names no [today] to compare with"
        caption += "." if base is None else f": beside the recommendation stands {first} under its best policies."
    width = 3 if name else 2
    header = ["", "recommended", *([str(name)] if name else [])]
    return PageTable("Decision", header, [TableRow([*row, ""][:width]) for row in rows], caption)


def _certainty(ranked: Sequence[Standing]) -> str:
    alike = len(equals(ranked))
    if len(ranked) == 1:
        return "nothing else was tried"
    if len(ranked[0].cells) == 1:
        return "not known: one seed each"
    if alike:
        return f"not told apart from {alike} of {len(ranked) - 1} others (95 % over {len(ranked[0].cells)} seeds)"
    return f"better than all {len(ranked) - 1} others: the 95 % intervals over {len(ranked[0].cells)} seeds exclude zero"


def _mean(values: Sequence[float]) -> str:
    found = mean_interval(values)
    spread = f" [{spoken_number(found.low)}, {spoken_number(found.high)}]" if found.n > 1 else ""
    return f"{spoken_number(found.mean)}{spread}"


def _kilowatts(one: Standing) -> str:
    return f"{spoken_number(mean_interval(one.watts).mean / 1000)} kW"
