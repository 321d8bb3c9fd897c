"""The record of a live run: decisions and events as JSON lines, appended as they happen.

If the process is killed while writing, the last line may be incomplete; the next process that opens the file drops it.
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
from poolwise.live.logs import log_event, placement_items
from poolwise.live.platform import Pass
from poolwise.model import Arrival, Ended, Outcome, Reject, Start

VERSION = 1
REMEDY = "give the file that `poolwise live ... --record FILE` wrote"


class PassRecorder:
    """Append submissions, decisions, starts and ends of jobs to a file, which begins with a description of the run.

    For each job, only the first decision to start it is recorded until it has started: shadow mode repeats the decision in
    every pass. Raises InputError if the file cannot be written or is not a record.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        torn = _truncate_partial_line(path)
        if torn:
            log_event("record_truncated", record=str(path), dropped=torn)
        self._file = path.open("a", encoding="utf-8")
        self._decided: set[str] = set()
        self._running: dict[int, str] = {}
        self._write([{"kind": "begin", "version": VERSION, **about}])

    def observe_pass(self, done: Pass) -> None:
        """Append the decisions and events of a pass."""
        table, epoch = done.snapshot.table, done.snapshot.table.epoch
        now = epoch + done.batch.time
        lines: list[dict[str, Any]] = []
        for event in done.batch.events:
            if isinstance(event, Ended) and event.outcome is Outcome.REFUSED and event.run in self._running:
                lines.append({"kind": "refused", "job": self._running.pop(event.run), "time": now})
            if isinstance(event, Arrival):
                submitted = epoch + int(table.submit[event.job])
                lines.append({"kind": "submitted", "job": table.name(event.job), "time": submitted})
        for decision in (*done.outcome.committed, *(refused for refused, _ in done.outcome.rejected)):
            if isinstance(decision, Start) and decision.job in done.outcome.aside:
                continue  # the platform set this start aside: it cannot be placed
            if isinstance(decision, Start) and (name := table.name(decision.job)) not in self._decided:
                self._decided.add(name)
                lines.append(
                    {"kind": "decided", "job": name, "time": now, "placement": placement_items(decision, done.snapshot)}
                )
            elif isinstance(decision, Reject):
                lines.append({"kind": "rejected", "job": table.name(decision.job), "time": now, "why": decision.reason})
        lines += self._became(done, now)
        if lines:
            self._write(lines)

    def _became(self, done: Pass, now: int) -> list[dict[str, Any]]:
        """Return lines for the runs that began or ended since the last pass."""
        snapshot, lines = done.snapshot, list[dict[str, Any]]()
        real = {run.id: run for run in snapshot.runs()}
        for number in [number for number in self._running if number not in real]:
            lines.append({"kind": "ended", "job": self._running.pop(number), "time": now})
        for number, run in real.items():
            if number not in self._running:
                name = self._running[number] = snapshot.table.name(run.job)
                self._decided.discard(name)
                where = placement_items(Start(run.job, run.tasks, run.placement), snapshot)
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
    """Recorded facts about a job. Times are ns since 1970, None if not recorded."""

    submitted: int | None = None  # first time of each of these events
    decided: int | None = None  # when the scheduler decided to start it
    started: int | None = None
    ended: int | None = None
    would: tuple[str, ...] = ()  # placement that the scheduler chose, as `owner:resource=amount` items
    placement: tuple[str, ...] = ()  # actual placement
    rejected: str = ""  # reason why the scheduler rejected the job, "" if it did not


@dataclass(frozen=True)
class LiveRecord:
    """A parsed record of a live run."""

    about: Mapping[str, Any]  # description of the run: its mode and its scheduler
    jobs: Mapping[str, RecordedJob] = field(default_factory=dict)  # name -> recorded job, in order of first appearance
    torn: int = 0  # number of characters in an incomplete last line, which is ignored

    @classmethod
    def read(cls, path: Path) -> LiveRecord:
        """Read a record; raise InputError with file and line for an invalid one."""
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
    """Store a line's fact about a job unless an earlier line has recorded it."""
    kind, time = line["kind"], int(line["time"])
    if kind == "rejected":
        job.rejected = job.rejected or str(line["why"])
        return
    if kind == "refused":  # the committed start failed
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
        raise InputError("invalid line in a live record", file=path, line=number, remedy=REMEDY) from None
    if line["kind"] == "begin" and line.get("version") != VERSION:
        problem = f"unsupported record version {line.get('version')}; expected {VERSION}"
        raise InputError(problem, file=path, line=number, field="version", remedy="record the run again")
    assert isinstance(line, dict)
    return line


def _lines(path: Path) -> tuple[list[str], int]:
    """Return the complete lines of a file, and the length of an incomplete last line."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot read the record: {error.strerror}", file=path, remedy=REMEDY) from None
    whole, end, torn = text.rpartition("\n")
    return (whole.split("\n") if end else []), len(torn)


def _truncate_partial_line(path: Path) -> int:
    """Remove an incomplete last line and return its length. Raise InputError if the file is not a record or is read-only."""
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
        raise InputError(f"cannot write the record: {error.strerror}", file=path, remedy="check the path") from None
