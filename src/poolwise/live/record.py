"""The record of a live run: what was decided and what happened, appended as JSON lines.

A line is written whole or, where the process is killed, torn; a torn last line is dropped by whoever opens the file next.
Times are ns since 1970.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolwise.errors import InputError
from poolwise.live.logs import placed, say
from poolwise.live.platform import Pass
from poolwise.model import Arrival, Ended, Outcome, Reject, Start

VERSION = 1
REMEDY = "give the file that `poolwise live ... --record FILE` wrote"


class RecordedPasses:
    """Appends what passes show to a file: submissions, decisions, starts and ends as they really were.

    Only the first decision to start a job counts, until the job has started: in shadow mode it is made again and again.

    Raises InputError where the file cannot be written, or is something else.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        torn = _mend(path)
        if torn:
            say("torn", record=str(path), dropped=torn)
        self._file = path.open("a", encoding="utf-8")
        self._decided: set[str] = set()
        self._running: dict[int, str] = {}
        self._write([{"kind": "begin", "version": VERSION, **about}])

    def observe_pass(self, done: Pass) -> None:
        """Append what is new."""
        table, epoch = done.snapshot.table, done.snapshot.table.epoch
        now = epoch + done.batch.time
        lines: list[dict[str, Any]] = []
        for event, told in done.events():
            if isinstance(event, Ended) and event.outcome is Outcome.REFUSED and event.run in self._running:
                lines.append({"kind": "refused", "job": self._running.pop(event.run), "time": now})
            if isinstance(event, Arrival):
                submitted = epoch + int(told.submit[event.job])
                lines.append({"kind": "submitted", "job": told.name(event.job), "time": submitted})
        for decision in (*done.outcome.committed, *(refused for refused, _ in done.outcome.rejected)):
            if isinstance(decision, Start) and decision.job in done.outcome.aside:
                continue  # it could not be
            if isinstance(decision, Start) and (name := table.name(decision.job)) not in self._decided:
                self._decided.add(name)
                lines.append({"kind": "decided", "job": name, "time": now, "placement": placed(decision, done.snapshot)})
            elif isinstance(decision, Reject):
                lines.append({"kind": "rejected", "job": table.name(decision.job), "time": now, "why": decision.reason})
        lines += self._became(done, now)
        if lines:
            self._write(lines)

    def _became(self, done: Pass, now: int) -> list[dict[str, Any]]:
        """Runs that are new, and runs that are over."""
        snapshot, lines = done.snapshot, list[dict[str, Any]]()
        real = {run.id: run for run in snapshot.runs()}
        for number in [number for number in self._running if number not in real]:
            lines.append({"kind": "ended", "job": self._running.pop(number), "time": now})
        for number, run in real.items():
            if number not in self._running:
                name = self._running[number] = snapshot.table.name(run.job)
                self._decided.discard(name)
                where = placed(Start(run.job, run.tasks, run.placement), snapshot)
                lines.append({"kind": "started", "job": name, "time": snapshot.table.epoch + run.start, "placement": where})
        return lines

    def _write(self, lines: list[dict[str, Any]]) -> None:
        self._file.write("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass
class RecordedJob:
    """What a record says of a job; times in ns since 1970, None where it does not say.

    Attributes
    ----------
    submitted, decided, started, ended : when it was submitted, when the scheduler would have started or did start it, when
        it really started and ended, each for the first time
    would, placement : where it was decided to run, and where it ran, as `owner:resource=amount` items
    rejected : why the scheduler rejected it, "" where it did not
    """

    submitted: int | None = None
    decided: int | None = None
    started: int | None = None
    ended: int | None = None
    would: tuple[str, ...] = ()
    placement: tuple[str, ...] = ()
    rejected: str = ""


@dataclass(frozen=True)
class LiveRecord:
    """What the record of a live run says.

    Attributes
    ----------
    about : what the run was: its mode, its scheduler
    jobs : name -> what is said of it, in the order in which the record first names them
    torn : characters of a last line that was not written whole, and is left out
    """

    about: Mapping[str, Any]
    jobs: Mapping[str, RecordedJob] = field(default_factory=dict)
    torn: int = 0

    @classmethod
    def read(cls, path: Path) -> LiveRecord:
        """Read a record; raises InputError naming file and line for what is none."""
        whole, torn = _lines(path)
        about: dict[str, Any] = {}
        jobs: dict[str, RecordedJob] = {}
        for number, text in enumerate(whole, start=1):
            line = _parsed(text, path, number)
            if line["kind"] == "begin":
                about = {key: value for key, value in line.items() if key not in ("kind", "version")}
                continue
            job = jobs.setdefault(str(line["job"]), RecordedJob())
            _note(job, line)
        return cls(about, jobs, torn)


def _note(job: RecordedJob, line: Mapping[str, Any]) -> None:
    """Note what a line says of a job, unless an earlier one did."""
    kind, time = line["kind"], int(line["time"])
    if kind == "rejected":
        job.rejected = job.rejected or str(line["why"])
        return
    if kind == "refused":  # what was committed did not become real
        job.decided = job.started = None
        return
    if getattr(job, kind) is not None:
        return
    setattr(job, kind, time)
    if kind == "decided":
        job.would = tuple(line["placement"])
    elif kind == "started":
        job.placement = tuple(line["placement"])


def _parsed(text: str, path: Path, number: int) -> dict[str, Any]:
    kinds = ("begin", "submitted", "decided", "rejected", "started", "refused", "ended")
    try:
        line = json.loads(text)
        if line["kind"] not in kinds or (line["kind"] != "begin" and not {"job", "time"} <= line.keys()):
            raise KeyError("kind")
    except (ValueError, KeyError, TypeError):
        raise InputError("this is no line of a live record", file=path, line=number, remedy=REMEDY) from None
    if line["kind"] == "begin" and line.get("version") != VERSION:
        problem = f"the record is of version {line.get('version')}, not {VERSION}"
        raise InputError(problem, file=path, line=number, field="version", remedy="record anew")
    assert isinstance(line, dict)
    return line


def _lines(path: Path) -> tuple[list[str], int]:
    """Whole lines of a file, and the length of what follows the last of them."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy=REMEDY) from None
    whole, end, torn = text.rpartition("\n")
    return (whole.split("\n") if end else []), len(torn)


def _mend(path: Path) -> int:
    """Cut off a torn last line; returns its length. Raises InputError for a file that is no record, or cannot be written."""
    try:
        if not path.exists():
            return 0
        LiveRecord.read(path)
        content = path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.truncate(path, end)
        return len(content) - end
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path, remedy="check the path") from None
