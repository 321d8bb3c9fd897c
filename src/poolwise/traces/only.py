"""Filters on the jobs of a log by their attributes and times of submission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Workload
from poolwise.quantities import parse
from poolwise.traces import time_of_day
from poolwise.traces.numbers import NotANumber
from poolwise.traces.selection import select

Filter = str | int | Sequence[str | int]
"""One or several accepted values."""

FROM, TO = "from", "to"


def keep_only(workload: Workload, only: Mapping[str, Filter], path: Path, local: tzinfo) -> Workload:
    """Return the jobs that match all filters, with time 0 at the first submission; count the others as excluded.

    Each name is an attribute of the jobs, and each value is one that a job must have; "from" and "to" limit the submit times.
    `local` is the time zone of dates. Raises InputError for unknown names and values, and if no job remains.
    """
    reasons: dict[str, BoolArray] = {}
    for name, wanted in only.items():
        if name in (FROM, TO):
            at = _instant(workload, str(wanted), name, path, local)
            bad = workload.submit < at if name == FROM else workload.submit >= at
            reasons[f"submitted {'before' if name == FROM else 'at or after'} {wanted}"] = bad
            continue
        values = [str(wanted)] if isinstance(wanted, str | int) else [str(value) for value in wanted]
        column = workload.attributes.get(name)
        if column is None:
            names = [*sorted(workload.attributes), FROM, TO]
            raise UnknownNameError.of("attribute of the jobs", name, names, file=path, field=f"only.{name}")
        texts = column.astype(np.str_)
        for value in values:
            if not (texts == value).any():
                raise UnknownNameError.of(
                    f"{name} in this log", value, np.unique(texts).tolist(), file=path, field=f"only.{name}"
                )
        reasons[f"{name} other than {', '.join(values)}"] = ~np.isin(texts, values)
    keep, excluded = select(reasons, path, "keep more jobs (only)")
    selected = select_jobs(workload, keep)
    return from_first_job(replace(selected, excluded={**workload.excluded, **excluded}))


def select_jobs(workload: Workload, rows: slice | BoolArray) -> Workload:
    """Return the jobs of some rows; their times are unchanged."""
    return replace(
        workload,
        id=workload.id[rows],
        submit=workload.submit[rows],
        duration=workload.duration[rows],
        requested=workload.requested[rows],
        tasks=workload.tasks[rows],
        requests={name: column[rows] for name, column in workload.requests.items()},
        attributes={name: column[rows] for name, column in workload.attributes.items()},
    )


def from_first_job(workload: Workload) -> Workload:
    """Return a workload with time 0 at the submission of its first job."""
    first = int(workload.submit[0])
    epoch = None if workload.epoch is None else workload.epoch + first
    return replace(workload, submit=workload.submit - first, epoch=epoch)


def _instant(workload: Workload, text: str, name: str, path: Path, local: tzinfo) -> int:
    """Return a date, or a time since the first job, in ns since time 0."""
    try:
        return int(workload.submit[0]) + parse(text, "time")
    except ValueError:
        word = f"{text}T00:00:00" if len(text) == len("2026-03-01") else text
        try:
            instant = int(time_of_day.instants([word], local)[0][0])
        except NotANumber:
            remedy = "write 2026-03-01, 2026-03-01T12:00:00, or a time since the first job such as 7 d"
            raise InputError(f"'{text}' is not a date", file=path, field=f"only.{name}", remedy=remedy) from None
    if workload.epoch is None:
        problem, remedy = "the log has no calendar times", "write a time since the first job, such as 7 d"
        raise InputError(problem, file=path, field=f"only.{name}", remedy=remedy)
    return instant - workload.epoch
