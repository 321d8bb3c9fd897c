"""Merges several renumberings of jobs in one batch of events into a single one, from reported rows to current rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from poolwise.model import Arrival, CapacityChanged, Ended, Event, Renumbered, Started, Withdrawn

JobEvent = Arrival | Started | Ended | Withdrawn


def merge_renumberings(events: Iterable[Event]) -> list[Event]:
    """Return the same events with at most one `Renumbered`.

    Events before it refer to rows of the reported table, events after it to rows of the current table. An event between two
    renumberings uses the job's row before or after; it is dropped if the job exists in neither table. Capacity changes of
    replaced machines are dropped.
    """
    before: list[Event] = []
    after: list[Event] = []
    rows: dict[int, int] | None = None  # reported row -> current row
    reported_as: dict[int, int] = {}
    for event in events:
        if isinstance(event, Renumbered):
            before = [one for one in before if not isinstance(one, CapacityChanged)]
            moved = (_moved(one, event.rows) for one in after if not isinstance(one, CapacityChanged))
            after = [one for one in moved if one is not None]
            now = dict(event.rows)
            rows = dict(now) if rows is None else {reported: now[row] for reported, row in rows.items() if row in now}
            reported_as = {row: reported for reported, row in rows.items()}
        elif rows is None:
            before.append(event)
        elif isinstance(event, Started | Ended | Withdrawn) and event.job in reported_as:
            before.append(replace(event, job=reported_as[event.job]))
        else:
            after.append(event)
    return before if rows is None else [*before, Renumbered(rows), *after]


def _moved(event: Event, rows: Mapping[int, int]) -> Event | None:
    """Return an event with the new row of its job, None if the job has none."""
    if not isinstance(event, JobEvent):
        return event
    return replace(event, job=rows[event.job]) if event.job in rows else None
