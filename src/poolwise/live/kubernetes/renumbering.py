"""Events of several numberings of jobs as events of two: rows as they were told, and rows as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from poolwise.model import Arrival, CapacityChanged, Ended, Event, Renumbered, Started, Withdrawn

OfJob = Arrival | Started | Ended | Withdrawn


def renumbered_once(events: Iterable[Event]) -> list[Event]:
    """Return the same events with one `Renumbered` at most.

    Those before it name rows of the table that was told, those after it rows of the table that is there now.
    What happened between two numberings is told by the row that the job had before, or has after, and not at all of a job that
    came and went between. Capacities of machines that were replaced are left out.
    """
    before: list[Event] = []
    after: list[Event] = []
    rows: dict[int, int] | None = None  # as told -> now
    told_as: dict[int, int] = {}
    for event in events:
        if isinstance(event, Renumbered):
            before = [one for one in before if not isinstance(one, CapacityChanged)]
            moved = (_moved(one, event.rows) for one in after if not isinstance(one, CapacityChanged))
            after = [one for one in moved if one is not None]
            now = dict(event.rows)
            rows = dict(now) if rows is None else {told: now[row] for told, row in rows.items() if row in now}
            told_as = {row: told for told, row in rows.items()}
        elif rows is None:
            before.append(event)
        elif isinstance(event, Started | Ended | Withdrawn) and event.job in told_as:
            before.append(replace(event, job=told_as[event.job]))
        else:
            after.append(event)
    return before if rows is None else [*before, Renumbered(rows), *after]


def _moved(event: Event, rows: Mapping[int, int]) -> Event | None:
    """An event by the new row of its job; None where the job has none."""
    if not isinstance(event, OfJob):
        return event
    return replace(event, job=rows[event.job]) if event.job in rows else None
