"""Units that a job's tasks may use at all, whatever is idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from poolwise.model import JobTable
from poolwise.policies.placement.units.layout import ANY_TYPE, Tier, UnitLayout


class Choices:
    """Units of a machine and unit preferences of jobs."""

    def __init__(self, layout: UnitLayout, table: JobTable) -> None:
        self.layout, self.table = layout, table
        self._able: dict[int, tuple[int, ...]] = {}
        self._tiers: dict[tuple[int, ...], tuple[Tier, ...]] = {}

    def attribute(self, name: str, job: int, default: int) -> int:
        """Return an integer attribute of a job; `default` if the table has no such column."""
        column = self.table.attributes.get(name)
        return default if column is None else int(column[job])

    def able(self, job: int) -> tuple[int, ...]:
        """Return the unit types that can run a job's tasks."""
        kind = self.attribute("task_type", job, 0)
        if kind not in self._able:
            self._able[kind] = self.layout.able(kind)
        return self._able[kind]

    def preferred(self, job: int) -> int | None:
        """Return the number of the unit type that a job prefers, None if it has no preference."""
        wanted = self.attribute("preferred_type", job, ANY_TYPE)
        return None if wanted == ANY_TYPE or not len(self.layout.code) else wanted

    def tiers(self, job: int, columns: Sequence[str], find: Callable[[int, Choices], tuple[Tier, ...]]) -> tuple[Tier, ...]:
        """Return a job's tiers under a policy, calling `find` once for all jobs with equal values in `columns`.

        A policy brings its own columns and `find`, so one object serves one policy.
        """
        key = tuple(self.attribute(name, job, 0) for name in columns)
        if key not in self._tiers:
            self._tiers[key] = find(job, self)
        return self._tiers[key]
