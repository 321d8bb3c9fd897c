"""What the answer of a plan costs, today's machine beside it, and what would be bought at other prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from poolwise.presentation.format import spoken_number
from poolwise.units import parse

LEAST, LIKELY, MOST = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Prices:
    """What may be bought and what it costs.

    Attributes
    ----------
    sizes : d of them
    amounts : (d, n_1, ..., n_d) how much of each a candidate has in the whole machine, in the units of the prices
    today : (d,) the same of today's machine; None where the plan names no today, or it is a machine of other parts
    """

    sizes: Sequence[Size]
    amounts: FloatArray
    today: FloatArray | None = None

    @property
    def ends(self) -> list[tuple[int, int]]:
        """(size, end of its price) at which the search may end elsewhere: one price alone moves all candidates alike."""
        ranged = [k for k, size in enumerate(self.sizes) if size.price[LEAST] < size.price[MOST]]
        return [(k, end) for k in ranged for end in (LEAST, MOST)] if len(self.sizes) > 1 else []

    @property
    def other_costs(self) -> list[FloatArray]:
        """(n_1, ..., n_d) $ of each candidate with one price at an end of its range, in the order of `ends`."""
        return [priced(self.sizes, self.amounts, {k: end}) for k, end in self.ends]

    def cost(self, element: Element) -> Cost:
        """Return the bill of a candidate."""
        now = np.zeros(len(self.sizes)) if self.today is None else self.today
        lines = (
            CostLine(size.paid, size.unit, float(self.amounts[(k, *element)]), float(now[k]), size.price)
            for k, size in enumerate(self.sizes)
        )
        return Cost(tuple(lines), self.today is not None)


def bought_today(sizes: Sequence[Size], document: Document, machine: Json) -> FloatArray | None:
    """(d,) how much of each size today's machine has, as its file says; None where it lacks one of them."""
    there = document.copy()
    there.tables["machine"] = machine
    try:
        counts = [parse(there.get(size.key), size.dimension) for size in sizes]
        return np.array([c / size.per_unit * copies(there, size.key) for c, size in zip(counts, sizes, strict=True)])
    except (InputError, ValueError):
        return None


def price_sentences(prices: Prices, found: Search, label: Sequence[str]) -> Iterator[str]:
    """Say what would be bought at the ends of each price; `label` names the candidates that `Search.elsewhere` has."""
    same = [k for k, element in enumerate(found.elsewhere) if element == found.best]
    for k, (which, end) in enumerate(prices.ends):
        if k not in same:
            size = prices.sizes[which]
            yield f"At {spoken_number(size.price[end])} $ for each {size.paid} it would be {label[k]}."
    if same:
        others = "any other price" if len(same) < len(found.elsewhere) else "any one price"
        yield f"With {others} at an end of its range, the answer stays the same."
