"""Place mode: waiting jobs are held; a job to start is assigned nodes and licenses, verified, released, and verified again.

Neither Slurm's return codes nor earlier reads are trusted, since users and administrators change jobs at any time. A start that
does not take effect is withdrawn: the job is held again, and its nodes and licenses are cleared.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import ScontrolSession, SlurmTimeoutError, logged_timeouts, run_client
from poolwise.live.slurm.commands import (
    RETURNED_MARK,
    SUBMIT_HOLD_MARK,
    SlurmAssignment,
    clear_commands,
    has_mark,
    leader_id,
    mark_command,
)
from poolwise.live.slurm.parsing import ALLOCATED_STATES, NOTE_SEPARATOR, group_components, max_cpus, read_cluster, read_jobs
from poolwise.live.slurm.platform import HetComponents, PendingStart, SlurmPlatform
from poolwise.model import (
    CommitResult,
    Decision,
    Decisions,
    Ended,
    Event,
    JobWithdrawn,
    Outcome,
    Reject,
    Resize,
    Start,
    Started,
    Stop,
    Wait,
)
from poolwise.quantities import SECOND

BLOCKED_REASONS = ("ReqNodeNotAvail", "Licenses", "Nodes_required", "BadConstraints", "PartitionNodeLimit", "Resources")
"""Prefixes of wait reasons for which a released job will not start soon."""


_MAX_REFUSALS = 5  # refused starts in a row
RETRY_DELAY = 2 * SECOND  # delay of the next pass after a refused start (ns)


class PlacePlatform(SlurmPlatform):
    """Poolwise decides when and where jobs start.

    A start is withdrawn if Slurm does not start the released job within `grace` seconds. A job is given back to Slurm after
    five refused starts in a row, or if it could not be placed within `limit` seconds of its submission.
    """

    def __init__(self, *args: Any, grace: float = 8.0, limit: float = 7 * 86400.0, **options: Any) -> None:
        self.grace, self.limit = grace, limit
        self.session = ScontrolSession()
        self.refused: dict[str, int] = {}
        self._inspected: set[str] = set()  # pending jobs whose marks have been read
        super().__init__(*args, **options)

    def is_schedulable(self, gang: HetComponents) -> bool:
        """Return whether the job is held, but not by its user, and may start."""
        return all(job.held for job in gang) and not any(job.held_by_user for job in gang) and self.may_start(gang)

    # Released jobs

    def resolve_start(self, name: str, gang: HetComponents | None) -> Event | None:
        """Return the outcome if a released job runs, was held or is gone; withdraw the start if it is overdue."""
        start = self.released[name]
        if gang is None:  # cancelled, or already finished
            del self.released[name]
            return Ended(start.run, start.row, self.tasks_of(start.row), Outcome.FINISHED)
        if all(job.state in ALLOCATED_STATES for job in gang):
            nodes = {node for job in gang for node in job.allocated}
            if nodes != start.nodes:
                log_event("placement_mismatch", logging.WARNING, job=name, decided=sorted(start.nodes), runs=sorted(nodes))
            del self.released[name]
            self.refused.pop(name, None)
            return Started(start.run, start.row)
        if all(job.held for job in gang):
            return self._refusal(name, gang, self.released.pop(name))
        age = time.monotonic() - start.since
        if age > self.grace or (age > self.grace / 4 and gang[0].reason.startswith(BLOCKED_REASONS)):
            # hold the job and clear its assignment; the next poll shows whether Slurm had already started it
            log_event("start_withdrawn", logging.WARNING, job=name, why=gang[0].reason)
            start.withdrawn = True
            with logged_timeouts():
                self.session.send([f"hold {leader_id(name, gang)}", *clear_commands(name, gang, self.layout)])
        return None

    def _refusal(self, name: str, gang: HetComponents, start: PendingStart) -> Ended:
        """Requeue a job that did not start, or give it back after too many refusals."""
        count = self.refused[name] = self.refused.get(name, 0) + 1
        why = "Slurm did not start the job in time" if start.withdrawn else "another user held the job"
        requeue = self.is_schedulable(gang)
        if count >= _MAX_REFUSALS:
            requeue = False
            self.give_back(name, f"Slurm refused {count} starts that Poolwise requested")
        return Ended(start.run, start.row, self.tasks_of(start.row), Outcome.REFUSED, requeue, why)

    # After each poll

    def after_poll(self) -> None:
        """Hold jobs that Slurm could start, except those given back; polls again if anything was changed."""
        pending = {
            name: gang
            for name, gang in self.listing.gangs.items()
            if self.in_partition(gang) and name not in self.released and all(job.state == "PENDING" for job in gang)
        }
        held_at_submit = self._read_marks(pending)
        commands = []
        for name, gang in pending.items():
            if name in self.ignored:
                continue
            job_id = leader_id(name, gang)
            if name in held_at_submit or not all(job.held for job in gang):
                commands.append(f"hold {job_id}")
            if name in held_at_submit:
                commands.append(mark_command(job_id, ""))
            if _may_begin_now(gang) and (gang[0].start or 0) > time.time_ns():
                commands.append(f"update JobId={job_id} StartTime=now")
        if commands:
            self.session.send(commands)
            self.listing = read_cluster(self.settings.partition)

    def _read_marks(self, pending: dict[str, HetComponents]) -> set[str]:
        """Read the marks of new jobs: ignore those given back earlier, return those held at submission."""
        self._inspected &= pending.keys()
        new = [name for name, gang in pending.items() if name not in self._inspected and _may_be_marked(gang)]
        shown = dict(zip(new, self.session.send([f"show job {leader_id(name, pending[name])}" for name in new]), strict=True))
        self.ignored |= {name for name, text in shown.items() if has_mark(text, RETURNED_MARK)}
        self._inspected |= shown.keys()
        return {name for name, text in shown.items() if has_mark(text, SUBMIT_HOLD_MARK)}

    def after_compare(self, events: list[Event]) -> None:
        """Give back jobs with an invalid request and jobs that have waited too long."""
        for name, error in list(self.invalid_requests.items()):
            gang = self.listing.gangs.get(name)
            if gang is not None and self.in_partition(gang) and self.is_schedulable(gang):
                self.give_back(name, error.message)
        now = self.table.epoch + self.now
        for name in list(self.rows.waiting):
            if (request := self.rows.request(name)) is not None and now - request.submit > self.limit * SECOND:
                events.append(JobWithdrawn(self.rows.waiting[name]))
                self.give_back(name, f"Poolwise could not place it within {self.limit:g} s")

    # Commit

    def commit(self, decisions: Decisions) -> CommitResult:
        """Carry out decisions: starts in one batch, others one by one."""
        committed: list[Decision] = []
        rejected: list[tuple[Decision, str]] = []
        chosen: list[tuple[Start, SlurmAssignment]] = []
        free = self._free_nodes()
        for decision in decisions:
            match decision:
                case Start():
                    assignment = self._assign(decision, free)
                    if isinstance(assignment, str):
                        rejected.append((decision, assignment))
                    else:
                        free -= assignment.all_nodes
                        chosen.append((decision, assignment))
                case Stop(number, requeue, _):
                    why = self._stop_run(number, requeue)
                    rejected += [(decision, why)] if why else []
                    committed += [] if why else [decision]
                case Resize():
                    rejected.append((decision, "Slurm cannot resize a running job"))
                case Reject(job, reason):
                    self.give_back(self.table.name(job), reason)
                    committed.append(decision)
                case Wait():
                    committed.append(decision)
        started, lost = self._release(chosen)
        committed += [start for start, _ in started]
        rejected += lost
        retry = self.now + RETRY_DELAY if rejected else None
        self.next_wakeup = min((at for at in (decisions.next_wakeup, retry) if at is not None), default=None)
        return CommitResult(tuple(committed), tuple(rejected), tuple(started))

    def _free_nodes(self) -> set[str]:
        """Return the names of usable nodes without jobs or, if nodes are shared, of all usable nodes."""
        usable = {name for name in self.listing.nodes if self.layout.is_usable(name, self.listing)}
        if not self.settings.whole:
            return usable
        taken = {node for job in self.listing.jobs for node in job.allocated}
        return usable - taken - {node for run in self.released.values() for node in run.nodes}

    def _assign(self, start: Start, free: set[str]) -> SlurmAssignment | str:
        name = self.table.name(start.job)
        gang = self.listing.gangs.get(name)
        if gang is None or name not in self.rows.waiting:
            return "the job is no longer pending"
        nodes = self.layout.choose_nodes(start.placement, free)
        if nodes is None:
            return "a node is no longer free"
        return SlurmAssignment.of(name, gang, nodes, self.layout, start.placement, frozenset(self.listing.nodes))

    def _release(
        self, chosen: list[tuple[Start, SlurmAssignment]]
    ) -> tuple[list[tuple[Start, int]], list[tuple[Decision, str]]]:
        """Assign nodes to jobs, verify the assignments, and release the jobs."""
        started: list[tuple[Start, int]] = []
        lost: list[tuple[Decision, str]] = []
        if not chosen:
            return started, lost
        decided = round(time.time(), 3)
        try:
            ready = self._prepare(chosen, lost)
        except SlurmTimeoutError as error:
            return started, [(start, str(error)) for start, _ in chosen]
        first = any(
            self.in_partition(gang) and not gang[0].held for gang in self.listing.gangs.values() if gang[0].state == "PENDING"
        )
        for start, assignment in ready:
            name = assignment.name
            self.rows.waiting.pop(name, None)
            number = self.add_committed_run(name, start)
            self.released[name] = PendingStart(number, start.job, start.placement, assignment.all_nodes)
            started.append((start, number))
            log_event(
                "assigned", job=name, decided=decided, nodes=sorted(assignment.all_nodes), licenses=dict(assignment.licenses)
            )
        with logged_timeouts():
            self.session.send([line for _, assignment in ready for line in assignment.release(first)])
        return started, lost

    def _prepare(
        self, chosen: list[tuple[Start, SlurmAssignment]], lost: list[tuple[Decision, str]]
    ) -> list[tuple[Start, SlurmAssignment]]:
        """Assign nodes and licenses; returns the starts whose assignment Slurm reports and whose job is unchanged."""
        lines = [(assignment, line) for _, assignment in chosen for line in assignment.commands()]
        replies = self.session.send([line for _, line in lines])
        errors: dict[str, str] = {}
        for (assignment, _), reply in zip(lines, replies, strict=True):
            if reply:
                errors.setdefault(assignment.name, reply)
        read = group_components(read_jobs(max_cpus(self.listing.nodes)))
        ready: list[tuple[Start, SlurmAssignment]] = []
        for start, assignment in chosen:
            gang = read.get(assignment.name)
            why = assignment.mismatch(gang)
            if not why and gang is not None:
                name = assignment.name
                unchanged = self.in_partition(gang) and self.rows.request(name) == self._request(name, gang)
                why = "" if unchanged else "its user has changed the job"
            if why:
                lost.append((start, f"{why}{': ' if assignment.name in errors else ''}{errors.get(assignment.name, '')}"))
            else:
                ready.append((start, assignment))
        return ready

    def _stop_run(self, number: int, requeue: bool) -> str:
        """Stop a run; returns the reason for a failure, "" on success."""
        if number not in self._runs:
            return "the run has already ended"
        name = self.table.name(self._runs[number].job)
        try:
            if requeue:
                self.session.send([f"requeuehold {name}"])
            else:
                run_client("scancel", name)
        except SlurmTimeoutError as error:
            return str(error)
        return ""

    # Give back

    def give_back(self, name: str, reason: str) -> None:
        """Release a job to Slurm without Poolwise's nodes and licenses, and write the reason to its comment.

        If a command fails, the job arrives again after the next poll and is retried.
        """
        self.ignore_job(name)
        gang = self.listing.gangs.get(name)
        if gang is None:
            return
        try:
            self.session.send([*clear_commands(name, gang, self.layout), mark_command(name, RETURNED_MARK)])
            run_client(
                "scontrol",
                "update",
                f"JobId={name}",
                f"Comment={gang[0].comment}{NOTE_SEPARATOR}released to Slurm: {reason}".strip(),
            )
            if not any(job.held_by_user for job in gang):
                self.session.send([f"release {leader_id(name, gang)}"])
        except SlurmTimeoutError as error:
            log_event("controller_unreachable", logging.WARNING, why=str(error))
            self.ignored.discard(name)
            return
        self.invalid_requests.pop(name, None)
        self.refused.pop(name, None)
        log_event("job_given_back", logging.WARNING, job=name, why=reason)

    def give_back_all(self) -> int:
        """Give back all held jobs of the partition, except those held by their users; returns their number."""
        held = [name for name, gang in self.listing.gangs.items() if self.in_partition(gang) and self.is_schedulable(gang)]
        for name in held:
            self.give_back(name, "place mode was ended")
        return sum(name in self.ignored for name in held)

    def close(self) -> None:
        """Close the session with Slurm."""
        self.session.close()


def _may_be_marked(gang: HetComponents) -> bool:
    """Return whether a pending job may have been given back, or held at submission."""
    return not all(job.held for job in gang) or any(job.held_by_user for job in gang)


def _may_begin_now(gang: HetComponents) -> bool:
    """Return whether a future start time is Slurm's own: its estimate, or the two-minute delay of a requeued job."""
    estimated = not gang[0].held and gang[0].reason != "BeginTime"
    return estimated or (gang[0].restarts > 0 and not gang[0].held_by_user)
