"""Structured logs of live runs: one JSON object per line and event, written through the standard library's logging.

`EVENTS` documents all events.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TextIO

from poolwise.live.platform import Pass
from poolwise.model import Ended, Outcome, Reject, Snapshot, Start, Started, Stop

logger = logging.getLogger("poolwise.live")
logger.addHandler(logging.NullHandler())  # commands that read a cluster once print their findings themselves


class LogEvent(NamedTuple):
    """Documentation of a log event."""

    level: str
    meaning: str  # what it reports, with its main fields


EVENTS: Mapping[str, LogEvent] = {
    # Decisions and runs on every platform
    "start": LogEvent("info", "The scheduler starts `job` on `placement`."),
    "start_refused": LogEvent("info", "The cluster refused to start `job`; `why` is logged once until it changes."),
    "stop": LogEvent("info", "The scheduler stops `run`."),
    "reject": LogEvent("info", "The scheduler rejects `job`, which can never run."),
    "pass": LogEvent("debug", "A pass committed or rejected decisions; durations in seconds."),
    "running": LogEvent("info", "All tasks of `run` are running."),
    "ended": LogEvent("info", "`run` ended with `outcome`; a warning if its start failed."),
    "wait_reason_missing": LogEvent("error", "The scheduler could not explain why jobs wait: `why`."),
    "record_truncated": LogEvent("info", "An incomplete last line of `record` was removed."),
    "controller_unreachable": LogEvent("warning", "The cluster did not respond; it is read again later."),
    "listening": LogEvent("info", "The HTTP endpoints are available."),
    "stopped": LogEvent("info", "The process ended as requested."),
    # Kubernetes
    "lease_acquired": LogEvent("info", "This process holds `lease` and schedules."),
    "lease_held": LogEvent("info", "Another process, `holder`, holds `lease`; this one waits for it."),
    "watch_interrupted": LogEvent(
        "info", "A watch of `path` ended with an error and is resumed, or its objects are listed again."
    ),
    "lease_renewal_failed": LogEvent("info", "A renewal of the lease failed and is retried."),
    "lease_release_failed": LogEvent("info", "A successor has to wait until the lease expires."),
    "no_usable_nodes": LogEvent("info", "The run begins without a node that can run jobs."),
    "resource_excluded": LogEvent("warning", "The node or device `name` is not part of the machine."),
    "resource_not_modeled": LogEvent("info", "The scheduler ignores `resource`."),
    "tainted_device_in_use": LogEvent("warning", "`claim` uses `device`, whose NoExecute taint it does not tolerate."),
    "taint_rule_not_evaluated": LogEvent("warning", "`rule` has an expression that fails; its other criteria decide."),
    "start_lost": LogEvent("info", "The devices or nodes of the start of `job` vanished; it is undone unless they return."),
    "device_allocated_twice": LogEvent("warning", "`device` is in the `claims`; all but the first one release it."),
    "watch_forbidden": LogEvent("warning", "The role does not permit watching objects of `kind`, which are not considered."),
    "event_write_failed": LogEvent("info", "An event about `pod` could not be written."),
    "pod_not_adopted": LogEvent("info", "A bound pod with invalid requests is not tracked as a run."),
    "start_abandoned": LogEvent("info", "The interrupted start of `job` could not be resumed."),
    "reservation_released": LogEvent("info", "The reservation of `claim` for the pod `uid` was released."),
    "claim_release_failed": LogEvent("info", "A reservation of `claim` could not be released."),
    "pod_evicted": LogEvent(
        "info", "The scheduler evicted `pod`; `reason` says why and is also recorded in an event of the pod."
    ),
    "eviction_failed": LogEvent("info", "`pod` could not be evicted."),
    "condition_write_failed": LogEvent("info", "The wait reason of `pod` could not be written."),
    # Slurm
    "assigned": LogEvent("info", "Place mode assigned nodes and licenses to `job`."),
    "job_given_back": LogEvent("warning", "Place mode returned `job` to Slurm."),
    "start_withdrawn": LogEvent("warning", "Slurm did not start `job` in time; it is held again."),
    "placement_mismatch": LogEvent("warning", "`job` runs on nodes other than those decided."),
    "priorities_written": LogEvent("info", "Order mode changed job priorities."),
    "machine_rebuilt": LogEvent("info", "The nodes or licenses of the cluster changed."),
    "machine_rebuild_failed": LogEvent("error", "The last valid machine stays in use."),
    "invalid_job_request": LogEvent("warning", "The request of `job` is invalid."),
    "wait_reason_write_failed": LogEvent("warning", "The wait reason of `job` could not be written."),
    # Memory agent
    "workload_watched": LogEvent("info", "The agent manages the limit of `workload`."),
    "workload_gone": LogEvent("info", "The control group of `workload` was removed."),
    "workload_stalled": LogEvent("warning", "`workload` cannot proceed within its limit."),
    "memory_unavailable": LogEvent("error", "No memory can be moved to `workload`; its former limit is restored."),
    "external_limit_change": LogEvent("warning", "Another process set the limit of `workload`."),
    "cgroup_read_failed": LogEvent("warning", "The control group could not be read."),
    "phase_change": LogEvent("info", "The memory behavior of `workload` changed."),
    "limit_moved": LogEvent("info", "The limit of `workload` changed; a warning below its working set."),
    "limit_proposed": LogEvent("info", "A dry run would change the limit of `workload`."),
    "limit_write_failed": LogEvent("warning", "The limit could not be written."),
    "limit_restored": LogEvent("info", "The limit from before the agent was restored."),
    "limit_restore_failed": LogEvent("error", "The former limit could not be restored."),
    "resource_check_failed": LogEvent("warning", "Memory or swap is insufficient; only a dry run starts."),
    # Node agent
    "agent_started": LogEvent("info", "The node agent serves `driver` on `node`."),
    "plugin_registered": LogEvent("info", "The kubelet registered the plugin."),
    "plugin_registration_failed": LogEvent("error", "The kubelet rejected the plugin."),
    "slices_published": LogEvent("info", "Resource slices were written."),
    "slice_publish_failed": LogEvent("warning", "Resource slices could not be written."),
    "claim_resumed": LogEvent("info", "A claim was found in the saved records."),
    "claim_prepared": LogEvent("info", "The devices of `claim` were prepared."),
    "claim_released": LogEvent("info", "The devices of `claim` were released."),
    "claim_reported": LogEvent("info", "Device conditions of `claim` were written."),
    "claim_retry": LogEvent("warning", "An operation on `claim` failed and is retried."),
    "orphaned_cdi_file_removed": LogEvent("warning", "A CDI file without a saved record was removed."),
    "link_read_failed": LogEvent("warning", "The counters of `link` could not be read."),
    "attach_failed": LogEvent("warning", "A device could not be attached."),
    "prepare_failed": LogEvent("warning", "Claims could not be prepared."),
    "release_failed": LogEvent("warning", "Claims could not be released."),
}
"""All events of live runs by name."""


class JsonLines(logging.Formatter):
    """Formatter that writes a log record as one JSON object with its time, level, event and fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON object of a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        content = {"time": at, "level": record.levelname.lower(), "event": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info:
            content["error"] = self.formatException(record.exc_info)
        return json.dumps(content, default=str)


def log_to(stream: TextIO = sys.stderr, level: int = logging.INFO) -> None:
    """Write the log of live runs to a stream, replacing earlier handlers."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


def log_event(event: str, level: int = logging.INFO, /, **fields: Any) -> None:
    """Log an event with its fields, which must not contain secrets."""
    logger.log(level, event, extra={"fields": fields})


class PassLogger:
    """Logs the decisions of each pass, their outcome, and the duration of passes that decided anything."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}  # job -> logged reason for which the cluster refused its start

    def observe_pass(self, done: Pass) -> None:
        """Log a pass."""
        self._log_runs(done)
        for decision, why in (*((decision, "") for decision in done.outcome.committed), *done.outcome.rejected):
            if isinstance(decision, Start):
                self._log_start(decision, why, done.snapshot)
            elif isinstance(decision, Stop | Reject):
                fields = _fields(decision, done.snapshot) | ({"refused": why} if why else {})
                log_event(type(decision).__name__.lower(), logging.INFO, **fields)
        if len(self._refused) > 2 * len(done.loop.queue) + 100:
            waiting = {done.snapshot.table.name(job) for job in done.loop.queue.jobs.tolist()}
            self._refused = {job: why for job, why in self._refused.items() if job in waiting}
        if done.outcome.committed or done.outcome.rejected:
            log_event(
                "pass",
                logging.DEBUG,
                waiting=len(done.loop.queue),
                seconds=round(done.seconds, 4),
                commit_seconds=round(done.commit_seconds, 4),
            )

    def _log_start(self, start: Start, why: str, snapshot: Snapshot) -> None:
        """Log a start once, and each reason of a refusal once: the scheduler may decide the same start in every pass."""
        job = snapshot.table.name(start.job)
        if not why:
            self._refused.pop(job, None)
            log_event("start", logging.INFO, **_fields(start, snapshot))
        elif self._refused.get(job) != why:
            self._refused[job] = why
            log_event("start_refused", logging.INFO, **_fields(start, snapshot), why=why)

    def _log_runs(self, done: Pass) -> None:
        table = done.snapshot.table
        for event in done.batch.events:
            match event:
                case Started(run, job):
                    log_event("running", job=table.name(job), run=run)
                case Ended(run, job, _, outcome, requeue, reason):
                    level = logging.WARNING if outcome is Outcome.REFUSED else logging.INFO
                    fields = {"outcome": outcome.value, "requeued": requeue, **({"why": reason} if reason else {})}
                    log_event("ended", level, job=table.name(job), run=run, **fields)
                case _:
                    pass


def placement_items(start: Start, snapshot: Snapshot) -> list[str]:
    """Return the placement of a start as `owner:resource=amount` items, in its order."""
    machine = snapshot.machine
    return [f"{machine.owners[o]}:{machine.resources[r]}={amount}" for _, o, r, amount in start.placement.rows()]


def _fields(decision: Start | Stop | Reject, snapshot: Snapshot) -> dict[str, Any]:
    match decision:
        case Start(job, _, _):
            return {"job": snapshot.table.name(job), "placement": placement_items(decision, snapshot)}
        case Stop(run, requeue, reason):
            return {"run": run, "requeue": requeue, "reason": reason}
        case Reject(job, reason):
            return {"job": snapshot.table.name(job), "reason": reason}
