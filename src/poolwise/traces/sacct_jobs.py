"""Jobs and job steps of a sacct export: separation, selection among duplicate rows, and derived columns."""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from datetime import tzinfo

import numpy as np

from poolwise.errors import InputError
from poolwise.traces import time_of_day
from poolwise.traces.numbers import NotANumber
from poolwise.traces.sacct_rows import UNKNOWN, SacctRows, lengths
from poolwise.traces.selection import occurring

_RAW = re.compile(r"(?P<job>[0-9]{1,18})(?P<step>\..+)?")
_NAME = re.compile(r"(?P<job>[0-9]{1,9})(?:_(?P<task>[0-9]{1,7})|\+(?P<part>[0-9]{1,4}))?(?P<waits>_\[.*\])?(?P<step>\..+)?")
_TASK, _PART = 10**8, 5 * 10**7  # above Slurm's largest job number, 67,108,863; array tasks are below 5 * 10**7

SAME = "identical duplicate row"
RESIZED = "earlier part of a job that changed its size"
EARLIER = "earlier row of a job that was requeued, or that was still active in an earlier export"


def split_jobs_and_steps(rows: SacctRows, local: tzinfo) -> tuple[SacctRows, SacctRows, dict[str, int]]:
    """Separate jobs and steps, keep one row of each, and count the excluded rows by reason.

    If a job has several rows, because of --duplicates or overlapping exports, the row with the latest submission is kept, then
    the latest start, then the longest runtime; sacct reports that row without --duplicates. Steps are kept if they did not
    start before that row.

    The rows have a column JobIDRaw: a whole number, followed by a step if any, as in "17.batch" or "17.0". If only JobID was
    exported, task 4 of array 17 becomes 1700000004 and part 1 of heterogeneous job 17 becomes 1750000001. Raises
    UnreadableRows; and InputError if two jobs have the same number, or the export has no jobs.
    """
    names, tasks_waiting = _names(rows)
    by_name: dict[str, list[int]] = defaultdict(list)
    identical = 0
    for row, name in enumerate(names):
        if name is None:
            continue
        if any(rows.cells[other] == rows.cells[row] for other in by_name[name]):
            identical += 1
        else:
            by_name[name].append(row)
    jobs, steps, resized, earlier, began = [], [], 0, 0, {}
    states = rows.words("State")
    for name, candidates in by_name.items():
        if "." in name:
            continue
        last = candidates[0]
        if len(candidates) > 1:
            _check_same_job(rows, name, candidates)
            last = max(candidates, key=lambda row: (*_recency(rows, row, local), row))
            began[name] = _recency(rows, last, local)[1]
        jobs.append(last)
        parts = sum(states[row] == "RESIZING" for row in candidates if row != last)
        resized += parts
        earlier += len(candidates) - 1 - parts
    if not jobs:
        raise InputError(
            "the export contains no jobs", file=rows.path, remedy="check --starttime, and your permission for --allusers"
        )
    orphans = 0
    for name, candidates in by_name.items():
        job, dot, _ = name.partition(".")
        if not dot:
            continue
        if job not in by_name:
            orphans += len(candidates)
            continue
        own = [row for row in candidates if not 0 <= _recency(rows, row, local)[1] < began[job]] if job in began else candidates
        if own:
            steps.append(max(own, key=lambda row: (*_recency(rows, row, local), row)) if len(own) > 1 else own[0])
        earlier += len(candidates) - min(1, len(own))
    excluded = {
        SAME: identical,
        RESIZED: resized,
        EARLIER: earlier,
        "pending array tasks in one row": tasks_waiting,
        "step whose job is not in the export": orphans,
    }
    if "JobIDRaw" not in rows.names:
        rows = rows.with_words("JobIDRaw", [name or "" for name in names])
    return rows.select_rows(sorted(jobs)), rows.select_rows(sorted(steps)), occurring(excluded)


def _names(rows: SacctRows) -> tuple[list[str | None], int]:
    """Return the job number and step of each row, None for a row of pending array tasks; and the number of such rows."""
    raw = "JobIDRaw" in rows.names
    column, pattern = ("JobIDRaw", _RAW) if raw else ("JobID", _NAME)
    words = rows.words(column)
    matches = [pattern.fullmatch(word) if word.isascii() else None for word in words]
    bad = np.array([match is None for match in matches], dtype=np.bool_)
    if bad.any():
        problem = f"'{words[int(np.argmax(bad))][:40]}' is not the number of a job or job step"
        rows.fail(bad, column, problem, "export JobIDRaw, and only rows of jobs and steps")
    names = [None if not raw and match["waits"] else _number(match, raw) for match in matches if match]
    return names, names.count(None)


def _number(match: re.Match[str], raw: bool) -> str:
    number = int(match["job"])
    if not raw and match["task"] is not None:
        number = number * _TASK + int(match["task"])
    elif not raw and match["part"] is not None:
        number = number * _TASK + _PART + int(match["part"])
    return f"{number}{match['step'] or ''}"


def _check_same_job(rows: SacctRows, name: str, candidates: list[int]) -> None:
    """Raise InputError if rows with the same number belong to different jobs."""
    for column in ("Cluster", "User"):
        if column in rows.names:
            index = rows.names.index(column)
            other = next((row for row in candidates if rows.cells[row][index] != rows.cells[candidates[0]][index]), None)
            if other is not None:
                problem = f"job {name} is already in line {rows.line[candidates[0]]}, with a different {column}"
                remedy = "export one cluster, and a period in which its job numbers did not restart"
                raise InputError(problem, file=rows.path, line=int(rows.line[other]), field=column, remedy=remedy)


def _recency(rows: SacctRows, row: int, local: tzinfo) -> tuple[int, int, int]:
    """Return submission and start in s since 1970, and runtime in s, of a row; -1 where unknown."""
    times = []
    for name in ("Submit", "Start"):
        word = rows.cells[row][rows.names.index(name)] if name in rows.names else ""
        try:
            times.append(int(time_of_day.seconds([word], local)[0][0]))
        except NotANumber:
            times.append(-1)
    ran = -1
    for name in ("ElapsedRaw", "Elapsed"):
        word = rows.cells[row][rows.names.index(name)] if name in rows.names else ""
        if word.isdecimal() and word.isascii() and len(word) < 19:
            ran = max(ran, int(word))
        elif word:
            with suppress(NotANumber):
                ran = max(ran, int(lengths([word])[0]))
    return times[0], times[1], ran


def add_missing_columns(rows: SacctRows, local: tzinfo, *, jobs: bool) -> SacctRows:
    """Add the columns that an export lacks, from equivalent columns or as unknown.

    Steps (`jobs` false) need no times. Raises UnreadableRows.
    """
    for name, other in (("NNodes", "AllocNodes"), ("AllocCPUS", "NCPUS")):
        if name not in rows.names:
            rows = rows.with_words(name, rows.words(other))
    for name in ("Start", "ReqMem", "MaxRSS", "NTasks"):
        if name not in rows.names:
            rows = rows.with_words(name, [""] * len(rows))
    if not jobs:
        return rows
    if "ElapsedRaw" not in rows.names:
        rows = rows.with_words("ElapsedRaw", _elapsed(rows, local))
    if "TimelimitRaw" not in rows.names:
        rows = rows.with_words("TimelimitRaw", _limits(rows))
    return rows


def _elapsed(rows: SacctRows, local: tzinfo) -> list[str]:
    """Return runtimes in seconds as text, (n_row,), "0" where unknown, from Elapsed or from Start and End."""
    if "Elapsed" in rows.names:
        known = np.array([word not in UNKNOWN for word in rows.words("Elapsed")], dtype=np.bool_)
        ran = rows.filter_rows(known).read("Elapsed", lengths, "write a time in sacct's format: 1-02:03:04")
    else:
        spans = zip(rows.words("Start"), rows.words("End"), strict=True)
        known = np.array([not {*words} & UNKNOWN for words in spans], dtype=np.bool_)
        some = rows.filter_rows(known)
        remedy = "write times in sacct's format, and set their time zone (--timezone)"
        start, end = (some.read(name, lambda words: time_of_day.seconds(words, local)[0], remedy) for name in ("Start", "End"))
        ran = end - start
        some.refuse(ran < 0, "End", "the end {value} is before the start", "correct or remove the row")
    values = np.zeros(len(rows), dtype=np.int64)
    values[known] = ran
    return list(map(str, values.tolist()))


def _limits(rows: SacctRows) -> list[str]:
    """Return time limits in minutes as text, (n_row,): words such as UNLIMITED unchanged, empty if the export has none."""
    if "Timelimit" not in rows.names:
        return [""] * len(rows)
    words = rows.words("Timelimit")
    timed = np.array([":" in word for word in words], dtype=np.bool_)
    seconds = rows.filter_rows(timed).read("Timelimit", lengths, "write a time in sacct's format: 1-02:03:04")
    minutes = iter((-(-seconds // 60)).tolist())
    return [str(next(minutes)) if is_time else word for is_time, word in zip(timed.tolist(), words, strict=True)]
