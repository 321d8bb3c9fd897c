"""Jobs and steps of an export of sacct: which rows are which, which of several counts, and columns that are derived."""

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

_RAW = re.compile(r"(?P<job>[0-9]{1,18})(?P<step>\..+)?")
_NAME = re.compile(r"(?P<job>[0-9]{1,9})(?:_(?P<task>[0-9]{1,7})|\+(?P<part>[0-9]{1,4}))?(?P<waits>_\[.*\])?(?P<step>\..+)?")
_TASK, _PART = 10**8, 5 * 10**7  # beyond the largest job number of Slurm, 67,108,863; tasks of an array are below 5 * 10**7

SAME = "the same row again"
EARLIER = "an earlier row of a job that was requeued, or that had not ended when first exported"


def parted(rows: SacctRows, local: tzinfo) -> tuple[SacctRows, SacctRows, dict[str, int]]:
    """Tell jobs and steps apart, and keep one row of each.

    Where a job has several rows, as --duplicates and exports that overlap give it, the row that was submitted last counts, of
    those the one that started last, of those the one that ran longest: it is what sacct gives without --duplicates. Of the
    steps those count that began no earlier.

    Returns
    -------
    jobs, steps
        Rows with a column JobIDRaw: a whole number, or one that a step follows: "17.batch", "17.0". From JobID alone, task 4 of
        the array 17 becomes 1700000004, part 1 of the heterogeneous job 17 becomes 1750000001.
    excluded
        Reason -> rows that were left out.

    Raises UnreadableRows, and InputError where two jobs have one number, and where there is no job.
    """
    names, tasks_waiting = _names(rows)
    places: dict[str, list[int]] = defaultdict(list)
    again = 0
    for row, name in enumerate(names):
        if name is None:
            continue
        if any(rows.cells[other] == rows.cells[row] for other in places[name]):
            again += 1
        else:
            places[name].append(row)
    jobs, steps, earlier, began = [], [], 0, {}
    for name, several in places.items():
        if "." in name:
            continue
        last = several[0]
        if len(several) > 1:
            _check_one(rows, name, several)
            last = max(several, key=lambda row: (*_age(rows, row, local), row))
            began[name] = _age(rows, last, local)[1]
        jobs.append(last)
        earlier += len(several) - 1
    if not jobs:
        raise InputError(
            "the export holds no jobs", file=rows.path, remedy="check --starttime, and that you may see --allusers"
        )
    orphans = 0
    for name, several in places.items():
        job, dot, _ = name.partition(".")
        if not dot:
            continue
        if job not in places:
            orphans += len(several)
            continue
        own = [row for row in several if not 0 <= _age(rows, row, local)[1] < began[job]] if job in began else several
        if own:
            steps.append(max(own, key=lambda row: (*_age(rows, row, local), row)) if len(own) > 1 else own[0])
        earlier += len(several) - min(1, len(own))
    excluded = {
        SAME: again,
        EARLIER: earlier,
        "array tasks that wait, in one row": tasks_waiting,
        "step whose job the export lacks": orphans,
    }
    if "JobIDRaw" not in rows.names:
        rows = rows.with_words("JobIDRaw", [name or "" for name in names])
    return rows.at(sorted(jobs)), rows.at(sorted(steps)), {reason: count for reason, count in excluded.items() if count}


def _names(rows: SacctRows) -> tuple[list[str | None], int]:
    """(n_row,) number of the job and its step, None for tasks of an array that wait in one row; how many rows those are."""
    raw = "JobIDRaw" in rows.names
    column, pattern = ("JobIDRaw", _RAW) if raw else ("JobID", _NAME)
    words = rows.words(column)
    found = [pattern.fullmatch(word) if word.isascii() else None for word in words]
    bad = np.array([match is None for match in found], dtype=np.bool_)
    if bad.any():
        problem = f"'{words[int(np.argmax(bad))][:40]}' is not the number of a job or of its step"
        rows.fail(bad, column, problem, "export JobIDRaw, and no rows of another kind")
    names = [None if not raw and match["waits"] else _number(match, raw) for match in found if match]
    return names, names.count(None)


def _number(match: re.Match[str], raw: bool) -> str:
    number = int(match["job"])
    if not raw and match["task"] is not None:
        number = number * _TASK + int(match["task"])
    elif not raw and match["part"] is not None:
        number = number * _TASK + _PART + int(match["part"])
    return f"{number}{match['step'] or ''}"


def _check_one(rows: SacctRows, name: str, several: list[int]) -> None:
    """Raise InputError where rows of one number are not of one job."""
    for column in ("Cluster", "User"):
        if column in rows.names:
            place = rows.names.index(column)
            other = next((row for row in several if rows.cells[row][place] != rows.cells[several[0]][place]), None)
            if other is not None:
                problem = f"job {name} is already in line {rows.lines[several[0]]}, with another {column}"
                remedy = "export one cluster, and no months before its job numbers began anew"
                raise InputError(problem, file=rows.path, line=int(rows.lines[other]), field=column, remedy=remedy)


def _age(rows: SacctRows, row: int, local: tzinfo) -> tuple[int, int, int]:
    """Submission and start, s since 1970, and seconds that it ran, of a row; -1 each where unknown."""
    found = []
    for name in ("Submit", "Start"):
        word = rows.cells[row][rows.names.index(name)] if name in rows.names else ""
        try:
            found.append(int(time_of_day.seconds([word], local)[0][0]))
        except NotANumber:
            found.append(-1)
    ran = -1
    for name in ("ElapsedRaw", "Elapsed"):
        word = rows.cells[row][rows.names.index(name)] if name in rows.names else ""
        if word.isdecimal() and word.isascii() and len(word) < 19:
            ran = max(ran, int(word))
        elif word:
            with suppress(NotANumber):
                ran = max(ran, int(lengths([word])[0]))
    return found[0], found[1], ran


def completed(rows: SacctRows, local: tzinfo, *, jobs: bool) -> SacctRows:
    """Fill in the columns that an export lacks: from columns that say the same, or as unknown.

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
    """(n_row,) seconds that jobs ran, "0" where unknown: from Elapsed, or from Start to End."""
    if "Elapsed" in rows.names:
        known = np.array([word not in UNKNOWN for word in rows.words("Elapsed")], dtype=np.bool_)
        ran = rows.filter_rows(known).read("Elapsed", lengths, "give a time as sacct writes it: 1-02:03:04")
    else:
        told = zip(rows.words("Start"), rows.words("End"), strict=True)
        known = np.array([not {*words} & UNKNOWN for words in told], dtype=np.bool_)
        some = rows.filter_rows(known)
        remedy = "give times as sacct writes them, and their zone (--timezone)"
        start, end = (some.read(name, lambda words: time_of_day.seconds(words, local)[0], remedy) for name in ("Start", "End"))
        ran = end - start
        some.refuse(ran < 0, "End", "the end {value} is before the start", "correct or remove the row")
    found = np.zeros(len(rows), dtype=np.int64)
    found[known] = ran
    return list(map(str, found.tolist()))


def _limits(rows: SacctRows) -> list[str]:
    """(n_row,) minutes that jobs might run, words such as UNLIMITED as they stand, empty where the export tells nothing."""
    if "Timelimit" not in rows.names:
        return [""] * len(rows)
    words = rows.words("Timelimit")
    timed = np.array([":" in word for word in words], dtype=np.bool_)
    seconds = rows.filter_rows(timed).read("Timelimit", lengths, "give a time as sacct writes it: 1-02:03:04")
    minutes = iter((-(-seconds // 60)).tolist())
    return [str(next(minutes)) if told else word for told, word in zip(timed.tolist(), words, strict=True)]
