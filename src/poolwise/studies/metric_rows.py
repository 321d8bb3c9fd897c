"""Metrics of many cells: names once, numbers side by side."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping


class MetricRow(Mapping[str, float]):
    """Name -> value of a metric of one cell, in a sixth of the memory of a dictionary."""

    __slots__ = ("_place", "_values")

    def __init__(self, place: Mapping[str, int], values: array[float]) -> None:
        self._place, self._values = place, values

    def __getitem__(self, name: str) -> float:
        return self._values[self._place[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        """Whether all values are the same; one that is undefined is the same as another that is."""
        return _told(self) == _told(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of any mapping

    def __repr__(self) -> str:
        return repr(dict(self))


def _told(row: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in row.items()}


class MetricRows:
    """Makes rows that share their names."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, ...], Mapping[str, int]] = {}

    def row(self, values: Mapping[str, float]) -> MetricRow:
        """Keep the values of a cell."""
        names = tuple(values)
        if names not in self._places:
            self._places[names] = {name: k for k, name in enumerate(names)}
        return MetricRow(self._places[names], array("d", values.values()))

    @property
    def layouts(self) -> Collection[tuple[str, ...]]:
        """The names that rows have, each combination once, in the order in which they came."""
        return self._places.keys()
