"""Money as plain data: what is bought at which price, today's beside it, and how much depends on each price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poolwise.presentation.figure import Axis, Box, Boxes
from poolwise.presentation.format import spoken_number
from poolwise.presentation.table import Table

PriceRange = tuple[float, float, float]
"""$ at the least, the likely and the most."""


@dataclass(frozen=True)
class CostLine:
    """One price and how much is bought at it.

    Attributes
    ----------
    name, unit : as those of a bill's item
    then, now : amount under the answer, and today (0 where the study names no today)
    price : $ of a unit
    """

    name: str
    unit: str
    then: float
    now: float
    price: PriceRange

    @property
    def known(self) -> bool:
        """Whether the price has no range."""
        return self.price[0] == self.price[2]

    @property
    def said(self) -> str:
        """The price in words."""
        return _spread(self.price)


@dataclass(frozen=True)
class Cost:
    """Bills of the answer and of today, line by line; `today` says whether there is one to compare with."""

    lines: tuple[CostLine, ...]
    today: bool

    @property
    def total(self) -> PriceRange:
        """$ of the answer, all prices at one end of their ranges."""
        least, likely, most = (sum(line.then * line.price[k] for line in self.lines) for k in range(3))
        return least, likely, most

    @property
    def total_today(self) -> PriceRange:
        """The same of today's machine."""
        least, likely, most = (sum(line.now * line.price[k] for line in self.lines) for k in range(3))
        return least, likely, most

    @property
    def saved(self) -> PriceRange:
        """$ saved against today: each price at the end of its range that saves least, at its likely value, and at the other."""
        ends = [sorted((line.now - line.then) * price for price in line.price) for line in self.lines]
        likely = self.total_today[1] - self.total[1]
        return sum(end[0] for end in ends), likely, sum(end[2] for end in ends)

    @property
    def telling(self) -> list[CostLine]:
        """Lines whose price has a range on which the money depends, that with the least effect first."""
        effect = {line: abs(self.moved(line)[1] - self.moved(line)[0]) for line in self.lines}
        return sorted((line for line in self.lines if effect[line] > 0), key=lambda line: effect[line])

    def moved(self, line: CostLine) -> tuple[float, float]:
        """$ saved (or, without a today, spent) with one price at its least and at its most, the others likely."""
        base, weight = (self.saved[1], line.now - line.then) if self.today else (self.total[1], line.then)
        least, likely, most = line.price
        return base + weight * (least - likely), base + weight * (most - likely)


def money_between(amount: PriceRange) -> str:
    """Say an amount of money and what it may be."""
    least, likely, most = amount
    return f"{likely:,.0f} $" + ("" if least == most else f" ({least:,.0f} to {most:,.0f} $)")


def money_rows(cost: Cost, what: str, name: str = "today") -> list[list[str]]:
    """Rows of a card: what something costs, beside it today's (or what else it is compared with), and what is saved."""
    rows = [[what, money_between(cost.total), money_between(cost.total_today) if cost.today else ""]]
    if not cost.today:
        return rows
    least, likely, most = cost.saved
    if likely < 0:
        return [*rows, [f"Money spent beyond {name}", money_between((-most, -likely, -least)), ""]]
    return [*rows, [f"Money saved against {name}", money_between(cost.saved), ""]]


def cost_table(cost: Cost) -> Table:
    """Every line of the bill."""
    rows = []
    for line in cost.lines:
        cells = [line.name, _amount(line.then, line.unit), line.said, f"{line.then * line.price[1]:,.0f} $"]
        now = [_amount(line.now, line.unit), f"{line.now * line.price[1]:,.0f} $"] if cost.today else []
        rows.append([*cells, *now])
    end = ["", f"{cost.total_today[1]:,.0f} $"] if cost.today else []
    rows.append(["all", "", "", f"{cost.total[1]:,.0f} $", *end])
    header = ["", "amount", "price", "cost", *(["amount today", "cost today"] if cost.today else [])]
    note = "Costs at the likely price; in brackets the range of a price."
    return Table("What it costs", header, rows, note, chosen=len(rows) - 1)


def cost_sentences(cost: Cost) -> list[str]:
    """How far the money depends on each price."""
    what = "saved against today" if cost.today else "spent"
    amount = cost.saved if cost.today else cost.total
    said = [f"{money_between(amount)} {what}."]
    ranged = cost.telling
    if not any(not line.known for line in cost.lines):
        return [*said, "Each price is given as one number: give [least, likely, most] to see what depends on it."]
    if not ranged:
        return [*said, "No price that has a range changes that."]
    widest = ranged[-1]
    low, high = sorted(cost.moved(widest))
    said.append(f"Most depends on the price of each {widest.name}: between {low:,.0f} and {high:,.0f} $ {what} over its range.")
    if cost.today:
        said.extend(_turns(cost, ranged))
    return said


def _turns(cost: Cost, ranged: list[CostLine]) -> Iterator[str]:
    """Say at which price within its range saving turns into spending."""
    turning = False
    for line in ranged:
        low, high = sorted(cost.moved(line))
        if low < 0 < high:
            turning = True
            even = line.price[1] - cost.saved[1] / (line.now - line.then)
            side = "above" if cost.moved(line)[1] < 0 else "below"
            yield f"{side.capitalize()} {_price(even)} for each {line.name} today's machine is the cheaper one."
    if not turning:
        dearer = "today's" if cost.saved[1] > 0 else "the recommended"
        yield f"No price alone, within its range, makes {dearer} machine the cheaper one."


def tornado(cost: Cost) -> Boxes | None:
    """What each price does to the money, the widest on top; None where it depends on no range."""
    lines = cost.telling
    if not lines:
        return None
    base = cost.saved[1] if cost.today else cost.total[1]
    boxes = []
    for k, line in enumerate(lines):
        for end, to, price in zip(("least", "most"), cost.moved(line), (line.price[0], line.price[2]), strict=True):
            said = f"each {line.name} at {_price(price)}: {to:,.0f} $"
            boxes.append(Box(min(base, to), max(base, to), k + 0.15, k + 0.85, f"price at its {end}", said))
    return Boxes(
        "tornado",
        "What each price changes",
        f"Money {'saved against today' if cost.today else 'spent'} with one price at the ends of its range and all others "
        "likely; the dotted line has all of them likely.",
        boxes=boxes,
        series=("price at its least", "price at its most"),
        x_axis=Axis("saved against today ($)" if cost.today else "cost ($)"),
        y_axis=Axis("", ticks={k + 0.5: line.name for k, line in enumerate(lines)}),
        highlight=base,
    )


def _amount(value: float, unit: str) -> str:
    """Say how much of something is bought."""
    return f"{spoken_number(value)} {unit}".strip()


def _price(value: float) -> str:
    return f"{spoken_number(value)} $"


def _spread(price: PriceRange) -> str:
    least, likely, most = price
    return _price(likely) + ("" if least == most else f" ({spoken_number(least)} to {_price(most)})")
