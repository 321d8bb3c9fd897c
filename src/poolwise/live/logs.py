"""Structured logs: a JSON object on a line for each event, through the standard library's logging."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from poolwise.live.platform import Pass
from poolwise.model import CommitResult, Ended, Outcome, Reject, Snapshot, Start, Started, Stop

logger = logging.getLogger("poolwise.live")
logger.addHandler(logging.NullHandler())  # commands that look once say what there is to say themselves


class JsonLines(logging.Formatter):
    """Actions a record as one JSON object: time, level, event, and the fields that came with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        content = {"time": at, "level": record.levelname.lower(), "event": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info:
            content["error"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


def log_to(stream: TextIO = sys.stderr, level: int = logging.INFO) -> None:
    """Write the log of live runs to a stream, in place of wherever it went before."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


def say(event: str, level: int = logging.INFO, /, **fields: Any) -> None:
    """Log an event with its fields; nothing secret may be among them."""
    logger.log(level, event, extra={"fields": fields})


class LoggedPasses:
    """Logs what each pass decided, what became of it, and how long it took; passes in which nothing happens are left out."""

    def observe_pass(self, done: Pass) -> None:
        """Log a pass."""
        self._happened(done)
        for decision, why in _told(done.outcome):
            fields = _fields(decision, done.snapshot) | ({"refused": why} if why else {})
            say(type(decision).__name__.lower(), logging.INFO, **fields)
        if done.outcome.committed or done.outcome.rejected:
            say(
                "pass",
                logging.DEBUG,
                waiting=len(done.loop.queue),
                seconds=round(done.seconds, 4),
                commit_seconds=round(done.commit_seconds, 4),
            )

    def _happened(self, done: Pass) -> None:
        for event, table in done.events():
            match event:
                case Started(run, job):
                    say("running", job=table.name(job), run=run)
                case Ended(run, job, _, outcome, requeue, reason):
                    level = logging.WARNING if outcome is Outcome.REFUSED else logging.INFO
                    fields = {"outcome": outcome.value, "requeued": requeue, **({"why": reason} if reason else {})}
                    say("ended", level, job=table.name(job), run=run, **fields)
                case _:
                    pass


def placed(start: Start, snapshot: Snapshot) -> list[str]:
    """Write a placement as `owner:resource=amount` items, in its order."""
    machine = snapshot.machine
    return [f"{machine.owners[o]}:{machine.resources[r]}={amount}" for _, o, r, amount in start.placement.rows()]


def _told(outcome: CommitResult) -> list[tuple[Start | Stop | Reject, str]]:
    """Decisions worth a line, with the reason where the platform refused them."""
    found = [(decision, "") for decision in outcome.committed] + list(outcome.rejected)
    return [(decision, why) for decision, why in found if isinstance(decision, Start | Stop | Reject)]


def _fields(decision: Start | Stop | Reject, snapshot: Snapshot) -> dict[str, Any]:
    match decision:
        case Start(job, _, _):
            return {"job": snapshot.table.name(job), "placement": placed(decision, snapshot)}
        case Stop(run, requeue, reason):
            return {"run": run, "requeue": requeue, "reason": reason}
        case Reject(job, reason):
            return {"job": snapshot.table.name(job), "reason": reason}
