"""Costs as plain data: purchases and prices, compared with today's machine, and the effect of each price range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poolwise.presentation.figure import Axis, Box, Boxes
from poolwise.presentation.format import format_number
from poolwise.presentation.table import Table

PriceRange = tuple[float, float, float]
"""Minimum, likely value and maximum, $."""


@dataclass(frozen=True)
class CostLine:
    """One price and the amounts bought at it.

    Attributes
    ----------
    name, unit : name and unit of the bill's item
    recommended, today : amount under the recommendation, and today (0 if the study has no `[today]`)
    price : $ per unit
    """

    name: str
    unit: str
    recommended: float
    today: float
    price: PriceRange

    @property
    def has_fixed_price(self) -> bool:
        """True if the price has no range."""
        return self.price[0] == self.price[2]

    @property
    def price_text(self) -> str:
        """The price and its range as text."""
        least, likely, most = self.price
        return _format_price(likely) + ("" if least == most else f" ({format_number(least)} to {_format_price(most)})")


@dataclass(frozen=True)
class Cost:
    """Bills of the recommendation and of today's machine, line by line.

    `has_today` states whether the study has a `[today]`.
    """

    lines: tuple[CostLine, ...]
    has_today: bool

    @property
    def total(self) -> PriceRange:
        """Cost of the recommendation, $, with all prices at the same end of their ranges."""
        return self._total([line.recommended for line in self.lines])

    @property
    def total_today(self) -> PriceRange:
        """Cost of today's machine, $, with all prices at the same end of their ranges."""
        return self._total([line.today for line in self.lines])

    def _total(self, amounts: Sequence[float]) -> PriceRange:
        least, likely, most = (sum(n * line.price[k] for n, line in zip(amounts, self.lines, strict=True)) for k in range(3))
        return least, likely, most

    @property
    def saved(self) -> PriceRange:
        """Savings compared with today, $: each price at the end that saves least, at its likely value, and at the other end."""
        ends = [sorted((line.today - line.recommended) * price for price in line.price) for line in self.lines]
        likely = self.total_today[1] - self.total[1]
        return sum(end[0] for end in ends), likely, sum(end[2] for end in ends)

    @property
    def sensitive_lines(self) -> list[CostLine]:
        """Lines whose price range affects the result, the smallest effect first."""
        effect = {line: abs(self.range_over(line)[1] - self.range_over(line)[0]) for line in self.lines}
        return sorted((line for line in self.lines if effect[line] > 0), key=lambda line: effect[line])

    def range_over(self, line: CostLine) -> tuple[float, float]:
        """Return the $ saved (spent, without a `[today]`) at both ends of one price's range, with the other prices likely."""
        base, weight = (self.saved[1], line.today - line.recommended) if self.has_today else (self.total[1], line.recommended)
        least, likely, most = line.price
        return base + weight * (least - likely), base + weight * (most - likely)


def format_dollars(amount: float) -> str:
    """Format an amount of money, in whole dollars from 100 $ upward."""
    return f"{amount:,.0f} $" if abs(amount) >= 100 else f"{amount:.4g} $"


def format_money(amount: PriceRange) -> str:
    """Format an amount of money with its range, if it has one."""
    least, likely, most = amount
    return format_dollars(likely) + (
        "" if least == most else f" ({format_dollars(least).removesuffix(' $')} to {format_dollars(most)})"
    )


def money_rows(cost: Cost, label: str, reference: str = "today") -> list[list[str]]:
    """Return rows of a decision card: the cost labelled `label`, the cost of the `reference`, and the savings."""
    rows = [[label, format_money(cost.total), format_money(cost.total_today) if cost.has_today else ""]]
    if not cost.has_today:
        return rows
    least, likely, most = cost.saved
    if likely < 0:
        return [*rows, [f"Added cost compared with {reference}", format_money((-most, -likely, -least)), ""]]
    return [*rows, [f"Savings compared with {reference}", format_money(cost.saved), ""]]


def cost_table(cost: Cost) -> Table:
    """Return a table with every line of the bill."""
    rows = []
    for line in cost.lines:
        (amount, price), today = (
            (f"{format_number(n)} {line.unit}".strip(), format_dollars(n * line.price[1]))
            for n in (line.recommended, line.today)
        )
        rows.append([line.name, amount, line.price_text, price, *(today if cost.has_today else ())])
    end = ["", format_dollars(cost.total_today[1])] if cost.has_today else []
    rows.append(["total", "", "", format_dollars(cost.total[1]), *end])
    header = ["item", "amount", "unit price", "cost", *(["amount today", "cost today"] if cost.has_today else [])]
    note = "Costs use the likely price; parentheses show the range of a price."
    return Table("Cost breakdown", header, rows, note, chosen=len(rows) - 1)


def cost_sentences(cost: Cost) -> list[str]:
    """Describe the total and how much it depends on each price."""
    verb = "saved compared with today" if cost.has_today else "spent"
    amount = cost.saved if cost.has_today else cost.total
    sentences = [_added(cost.saved) if cost.has_today and amount[1] < 0 else f"{format_money(amount)} {verb}."]
    ranged = cost.sensitive_lines
    if not any(not line.has_fixed_price for line in cost.lines):
        return [*sentences, "All prices are single numbers. To see how much each price matters, give [least, likely, most]."]
    if not ranged:
        return [*sentences, "No price range affects this amount."]
    widest = ranged[-1]
    low, high = sorted(cost.range_over(widest))
    span = f"between {low:,.0f} and {high:,.0f} $ {verb}"
    if cost.has_today and high <= 0:
        span = f"between {-high:,.0f} and {-low:,.0f} $ more than today"
    elif cost.has_today and low < 0:
        span = f"from {-low:,.0f} $ more than today to {high:,.0f} $ {verb}"
    sentences.append(f"The price of each {widest.name} matters most: {span} over its range.")
    if cost.has_today:
        sentences.extend(_break_even_sentences(cost, ranged))
    return sentences


def _added(saved: PriceRange) -> str:
    """Describe how much more a recommendation costs than today; give both ends of the range if they differ in sign."""
    least, likely, most = saved
    if most > 0:
        return f"It costs {-likely:,.0f} $ more than today (from {-least:,.0f} $ more to {most:,.0f} $ less)."
    return f"It costs {format_money((-most, -likely, -least))} more than today."


def _break_even_sentences(cost: Cost, ranged: list[CostLine]) -> Iterator[str]:
    """Yield the price, within each range, at which savings turn into added cost."""
    crossed = False
    for line in ranged:
        low, high = sorted(cost.range_over(line))
        if low < 0 < high:
            crossed = True
            even = line.price[1] - cost.saved[1] / (line.today - line.recommended)
            side = "above" if cost.range_over(line)[1] < 0 else "below"
            yield f"{side.capitalize()} {_format_price(even)} for each {line.name}, today's machine is cheaper."
    if not crossed:
        dearer = "today's" if cost.saved[1] > 0 else "the recommended"
        yield f"No single price, within its range, makes {dearer} machine the cheaper one."


def tornado(cost: Cost) -> Boxes | None:
    """Return a chart of the effect of each price, the largest on top; None if no price range matters."""
    lines = cost.sensitive_lines
    if not lines:
        return None
    base = cost.saved[1] if cost.has_today else cost.total[1]
    boxes = []
    for k, line in enumerate(lines):
        for end, to, price in zip(("lowest", "highest"), cost.range_over(line), (line.price[0], line.price[2]), strict=True):
            description = f"each {line.name} at {_format_price(price)}: {format_dollars(to)}"
            boxes.append(Box(min(base, to), max(base, to), k + 0.15, k + 0.85, f"price at its {end}", description))
    return Boxes(
        "tornado",
        "Effect of each price",
        f"Money {'saved compared with today' if cost.has_today else 'spent'} if one price is at either end of its range and "
        "all others are at their likely values. The dotted line marks all prices at their likely values.",
        boxes=boxes,
        series=("price at its lowest", "price at its highest"),
        x_axis=Axis("savings compared with today ($)" if cost.has_today else "cost ($)"),
        y_axis=Axis("", ticks={k + 0.5: line.name for k, line in enumerate(lines)}),
        highlight=base,
    )


def _format_price(value: float) -> str:
    return f"{format_number(value)} $"
