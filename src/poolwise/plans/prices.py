"""Cost of a plan's answer, compared with today's machine, and answers at other prices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import InputError
from poolwise.files.document import Document
from poolwise.hashing import Json
from poolwise.optimize.monotone import Element
from poolwise.plans.search import Search
from poolwise.plans.sizes import Size, copies, priced
from poolwise.presentation.cost import Cost, CostLine
from poolwise.presentation.format import format_number
from poolwise.quantities import parse

LEAST, LIKELY, MOST = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Prices:
    """Purchasable amounts and their prices.

    Attributes
    ----------
    sizes : d sizes
    amounts : (d, n_1, ..., n_d) amount of each size in the whole machine of a candidate, in the units of the prices
    today : (d,) amounts in today's machine; None without a `[today]`, or if that machine lacks one of the sizes
    """

    sizes: Sequence[Size]
    amounts: FloatArray
    today: FloatArray | None = None

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Pairs (size, end of its price range) that can change the answer; empty if there is only one price."""
        ranged = [k for k, size in enumerate(self.sizes) if size.price[LEAST] < size.price[MOST]]
        return [(k, end) for k in ranged for end in (LEAST, MOST)] if len(self.sizes) > 1 else []

    @property
    def other_costs(self) -> list[FloatArray]:
        """Cost of each candidate ($), (n_1, ..., n_d), with one price at an end of its range; one array for each of `ends`."""
        return [priced(self.sizes, self.amounts, {k: end}) for k, end in self.ends]

    def cost(self, element: Element) -> Cost:
        """Return the bill of a candidate."""
        return bill(self.sizes, [self.amounts[(k, *element)] for k in range(len(self.sizes))], self.today)


def bill(sizes: Sequence[Size], amounts: Sequence[float], today: FloatArray | None = None) -> Cost:
    """Return the bill of the given amounts of the sizes, in the units of their prices, next to that of today's machine."""
    current = np.zeros(len(sizes)) if today is None else today
    lines = zip(sizes, amounts, current.tolist(), strict=True)
    return Cost(tuple(CostLine(size.paid, size.unit, float(n), now, size.price) for size, n, now in lines), today is not None)


def bought_today(sizes: Sequence[Size], document: Document, machine: Json) -> FloatArray | None:
    """Return the amount of each size in today's machine, (d,), read from its file; None if it lacks one of the sizes."""
    current = document.with_tables(machine=machine)
    try:
        counts = [parse(current.get(size.key), size.dimension) for size in sizes]
        return np.array([c / size.per_unit * copies(current, size.key) for c, size in zip(counts, sizes, strict=True)])
    except (InputError, ValueError):
        return None


def price_sentences(prices: Prices, search: Search, label: Callable[[Element], str]) -> Iterator[str]:
    """Describe the cheapest candidate at either end of each price range."""
    same = [k for k, element in enumerate(search.elsewhere) if element == search.best]
    for k, (which, end) in enumerate(prices.ends):
        if k not in same:
            size, element = prices.sizes[which], search.elsewhere[k]
            answer = "no candidate that is shown to meet the targets" if element is None else label(element)
            yield f"At {format_number(size.price[end])} $ for each {size.paid}, the answer is {answer}."
    if same:
        others = "any other price" if len(same) < len(search.elsewhere) else "any single price"
        yield f"With {others} at either end of its range, the answer stays the same."
