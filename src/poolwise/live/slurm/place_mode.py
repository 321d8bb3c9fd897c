"""Place mode: waiting jobs are held; a job to start is assigned nodes and licenses, verified, released, and verified again.

Neither Slurm's return codes nor earlier reads are trusted, since users and administrators change jobs at any time. A start that
does not take effect is withdrawn: the job is held again, and its nodes and licenses are cleared.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import ScontrolSession, SlurmTimeoutError, run_client
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
from poolwise.live.slurm.platform import CommittedRun, HetComponents, SlurmPlatform
from poolwise.live.slurm.shadow_mode import may_start
from poolwise.model import (
    CommitResult,
    Decision,
    Ended,
    Event,
    Outcome,
    Placement,
    Plan,
    Reject,
    Resize,
    Start,
    Started,
    Stop,
    Wait,
    Withdrawn,
)
from poolwise.units import SECOND

BLOCKED_REASONS = ("ReqNodeNotAvail", "Licenses", "Nodes_required", "BadConstraints", "PartitionNodeLimit", "Resources")
"""Prefixes of wait reasons for which a released job will not start soon."""


@dataclass
class PendingStart(CommittedRun):
    """The start of a released job that does not run yet.

    Attributes
    ----------
    run, row : its run id and job row
    nodes : names of the assigned nodes
    since : time of the release (monotonic s)
    withdrawn : whether the job was held again since
    """

    platform: PlacePlatform
    run: int
    row: int
    placement: Placement
    nodes: frozenset[str]
    since: float = field(default_factory=time.monotonic)
    withdrawn: bool = False

    def resolve(self, name: str, gang: HetComponents | None) -> Event | None:
        """Return the outcome of the start if the job runs, was held or is gone; withdraw the start if it is overdue."""
        platform = self.platform
        if gang is None:  # cancelled, or already finished
            del platform.released[name]
            return Ended(self.run, self.row, tuple(platform.tasks_of(self.row)), Outcome.FINISHED)
        if all(job.state in ALLOCATED_STATES for job in gang):
            nodes = {node for job in gang for node in job.allocated}
            if nodes != self.nodes:
                log_event("placement_mismatch", logging.WARNING, job=name, decided=sorted(self.nodes), runs=sorted(nodes))
            del platform.released[name]
            platform.refused.pop(name, None)
            return Started(self.run, self.row)
        if all(job.held for job in gang):
            del platform.released[name]
            return self._refusal(name, gang)
        age = time.monotonic() - self.since
        if age > platform.grace or (age > platform.grace / 4 and gang[0].reason.startswith(BLOCKED_REASONS)):
            self._withdraw(name, gang)
        return None

    def _withdraw(self, name: str, gang: HetComponents) -> None:
        """Hold the job again and clear its assignment; the next poll shows whether Slurm had already started it."""
        log_event("start_withdrawn", logging.WARNING, job=name, why=gang[0].reason)
        self.withdrawn = True
        try:
            self.platform.session.send([f"hold {leader_id(name, gang)}", *clear_commands(name, gang, self.platform.layout)])
        except SlurmTimeoutError as error:
            log_event("controller_unreachable", logging.WARNING, why=str(error))

    def _refusal(self, name: str, gang: HetComponents) -> Ended:
        """Requeue a job that did not start, or give it back after too many refusals."""
        platform = self.platform
        count = platform.refused[name] = platform.refused.get(name, 0) + 1
        why = "Slurm did not start the job in time" if self.withdrawn else "another user held the job"
        requeue = platform.is_schedulable(gang)
        if count >= platform.refusals:
            requeue = False
            platform.give_back(name, f"Slurm refused {count} starts that Poolwise requested")
        return Ended(self.run, self.row, tuple(platform.tasks_of(self.row)), Outcome.REFUSED, requeue, why)


RETRY_DELAY = 2 * SECOND
"""Delay of the next pass after a refused start (ns)."""


class PlacePlatform(SlurmPlatform):
    """Poolwise decides when and where jobs start.

    Parameters
    ----------
    grace : seconds that Slurm has to start a released job before the start is withdrawn
    limit : seconds after submission at which a job that could not be placed is given back to Slurm
    refusals : consecutive refused starts after which a job is given back
    """

    def __init__(self, *args: Any, grace: float = 8.0, limit: float = 7 * 86400.0, refusals: int = 5, **options: Any) -> None:
        self.grace, self.limit, self.refusals = grace, limit, refusals
        self.session = ScontrolSession()
        self.released: dict[str, PendingStart] = {}
        self.refused: dict[str, int] = {}
        self._inspected: set[str] = set()  # pending jobs whose marks have been read
        super().__init__(*args, **options)

    def is_schedulable(self, gang: HetComponents) -> bool:
        """Return whether the job is held, but not by its user, and may start."""
        return (
            all(job.held for job in gang)
            and not any(job.held_by_user for job in gang)
            and may_start(gang, self.table.epoch + self.now)
        )

    def committed(self) -> Mapping[str, CommittedRun]:
        """Released jobs that do not run yet, by name."""
        return self.released

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

    def after_compare(self) -> list[Event]:
        """Give back jobs with an invalid request and jobs that have waited too long."""
        for name, error in list(self.invalid_requests.items()):
            gang = self.listing.gangs.get(name)
            if gang is not None and self.in_partition(gang) and self.is_schedulable(gang):
                self.give_back(name, error.message)
        now, withdrawn = self.table.epoch + self.now, list[Event]()
        for name, request in self.rows.waiting():
            if now - request.submit > self.limit * SECOND:
                row = self.give_back(name, f"Poolwise could not place it within {self.limit:g} s")
                withdrawn += [] if row is None else [Withdrawn(row)]
        return withdrawn

    # Commit

    def commit(self, plan: Plan) -> CommitResult:
        """Carry out a plan: starts in one batch, other decisions one by one."""
        committed: list[Decision] = []
        rejected: list[tuple[Decision, str]] = []
        chosen: list[tuple[Start, SlurmAssignment]] = []
        free = self._free_nodes()
        for decision in plan.decisions:
            match decision:
                case Start():
                    found = self._assign(decision, free)
                    if isinstance(found, str):
                        rejected.append((decision, found))
                    else:
                        free -= found.all_nodes
                        chosen.append((decision, found))
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
        self.wake_at(self._next_pass(plan.wake_at, bool(rejected)))
        return CommitResult(tuple(committed), tuple(rejected), tuple(started))

    def _next_pass(self, requested: int | None, again: bool) -> int | None:
        retry = (self.now + RETRY_DELAY,) if again else ()
        return min((time for time in (requested, *retry) if time is not None), default=None)

    def _free_nodes(self) -> set[str]:
        """Return the names of usable nodes without jobs; on shared nodes, of all usable nodes."""
        usable = {name for name in self.listing.nodes if self.layout.is_usable(name, self.listing)}
        if not self.settings.whole:
            return usable
        taken = {node for job in self.listing.jobs for node in job.allocated}
        return usable - taken - {node for run in self.released.values() for node in run.nodes}

    def _assign(self, start: Start, free: set[str]) -> SlurmAssignment | str:
        """Choose nodes and licenses for a start, or return the reason why it is impossible."""
        name = self.table.name(start.job)
        gang = self.listing.gangs.get(name)
        if gang is None or not self.rows.is_waiting(name):
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
            self.rows.stop_waiting(name)
            number = self.add_committed_run(name, start)
            self.released[name] = PendingStart(self, number, start.job, start.placement, assignment.all_nodes)
            started.append((start, number))
            log_event(
                "assigned", job=name, decided=decided, nodes=sorted(assignment.all_nodes), licenses=dict(assignment.licenses)
            )
        try:
            self.session.send([line for _, assignment in ready for line in assignment.release(first)])
        except SlurmTimeoutError as error:
            log_event("controller_unreachable", logging.WARNING, why=str(error))  # the next poll shows the outcome
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
            if not why and gang is not None and not self.request_unchanged(assignment.name, gang):
                why = "its user has changed the job"
            if why:
                lost.append((start, f"{why}{': ' if assignment.name in errors else ''}{errors.get(assignment.name, '')}"))
            else:
                ready.append((start, assignment))
        return ready

    def _stop_run(self, number: int, requeue: bool) -> str:
        """Stop a run; returns the reason for a failure, "" on success."""
        name = self.name_of(number)
        if name is None:
            return "the run has already ended"
        try:
            if requeue:
                self.session.send([f"requeuehold {name}"])
            else:
                run_client("scancel", name)
        except SlurmTimeoutError as error:
            return str(error)
        return ""

    # Give back

    def give_back(self, name: str, reason: str) -> int | None:
        """Release a job to Slurm without Poolwise's nodes and licenses, and write the reason to its comment.

        Returns the row of a waiting job. If a command fails, the job arrives again after the next poll and is retried.
        """
        row, gang = self.ignore_job(name), self.listing.gangs.get(name)
        if gang is None:
            return row
        try:
            self.session.send([*clear_commands(name, gang, self.layout), mark_command(name, RETURNED_MARK)])
            run_client(
                "scontrol",
                "update",
                f"JobId={name}",
                f"Comment={gang[0].comment}{NOTE_SEPARATOR}given back to Slurm: {reason}".strip(),
            )
            if not any(job.held_by_user for job in gang):
                self.session.send([f"release {leader_id(name, gang)}"])
        except SlurmTimeoutError as error:
            log_event("controller_unreachable", logging.WARNING, why=str(error))
            self.ignored.discard(name)
            return row
        self.invalid_requests.pop(name, None)
        self.refused.pop(name, None)
        log_event("job_given_back", logging.WARNING, job=name, why=reason)
        return row

    def give_back_all(self, reason: str) -> int:
        """Give back all held jobs of the partition, except those held by their users; returns their number."""
        held = [name for name, gang in self.listing.gangs.items() if self.in_partition(gang) and self.is_schedulable(gang)]
        for name in held:
            self.give_back(name, reason)
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
