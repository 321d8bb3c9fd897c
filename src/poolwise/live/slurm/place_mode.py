"""Place mode: jobs wait held; those that are to start are given nodes and licences, checked, released, and read again.

Slurm's return codes are not believed, and other people change jobs too: what counts is what is read. A start that does not
become real is withdrawn: the job is held again, and its nodes and licences are taken back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import SlurmTimeoutError, ask
from poolwise.live.slurm.commands import GAVE_BACK, WAITS, SlurmAssignment, cleared, is_marked, leader, mark
from poolwise.live.slurm.parsing import SAID, gangs_of, most_cpus, read_cluster, read_jobs
from poolwise.live.slurm.pending_starts import PendingStart
from poolwise.live.slurm.platform import SlurmPlatform
from poolwise.live.slurm.poller import GANG, CommittedRun
from poolwise.live.slurm.session import ScontrolSession
from poolwise.live.slurm.shadow_mode import may_start
from poolwise.model import (
    CommitResult,
    Decision,
    Event,
    Plan,
    Reject,
    Resize,
    Start,
    Stop,
    Wait,
    Withdrawn,
)
from poolwise.units import SECOND

RETRY = 2 * SECOND
"""After a refusal there is another pass this much later (ns)."""


class PlacePlatform(SlurmPlatform):
    """Poolwise decides which job starts when and where.

    Parameters
    ----------
    grace
        Seconds that Slurm may take to start a released job before it is withdrawn.
    limit
        Seconds after its submission at which a job that could not be placed is given back to Slurm.
    refusals
        Starts of a job that may be refused one after the other before it is given back.
    """

    def __init__(self, *given: Any, grace: float = 8.0, limit: float = 7 * 86400.0, refusals: int = 5, **more: Any) -> None:
        self.grace, self.limit, self.refusals = grace, limit, refusals
        self.session = ScontrolSession()
        self.released: dict[str, PendingStart] = {}
        self.refused: dict[str, int] = {}
        self._seen: set[str] = set()  # pending jobs whose marks were looked at
        super().__init__(*given, **more)

    def waits(self, gang: GANG) -> bool:
        """Whether it is held, not by its user, and may begin."""
        return (
            all(job.held for job in gang)
            and not any(job.held_by_user for job in gang)
            and may_start(gang, self.table.epoch + self.now)
        )

    def committed(self) -> Mapping[str, CommittedRun]:
        """Jobs that were released and are not at work yet."""
        return self.released

    # After each reading

    def look_around(self) -> None:
        """Hold jobs that Slurm could start, but for those given back; reads again where anything was changed."""
        pending = {
            name: gang
            for name, gang in self.reading.gangs.items()
            if self.is_mine(gang) and name not in self.released and all(job.state == "PENDING" for job in gang)
        }
        waiting = self._look_up(pending)
        commands = []
        for name, gang in pending.items():
            if name in self.aside:
                continue
            called = leader(name, gang)
            if name in waiting or not all(job.held for job in gang):
                commands.append(f"hold {called}")
            if name in waiting:
                commands.append(mark(called, ""))
            if _may_begin_now(gang) and (gang[0].start or 0) > time.time_ns():
                commands.append(f"update JobId={called} StartTime=now")
        if commands:
            self.session.send(commands)
            self.reading = read_cluster(self.settings.partition)

    def _look_up(self, pending: dict[str, GANG]) -> set[str]:
        """Look once at the marks of jobs: those given back are set aside, those held at their submission are returned."""
        self._seen &= pending.keys()
        new = [name for name, gang in pending.items() if name not in self._seen and _may_be_marked(gang)]
        shown = dict(zip(new, self.session.send([f"show job {leader(name, pending[name])}" for name in new]), strict=True))
        self.aside |= {name for name, text in shown.items() if is_marked(text, GAVE_BACK)}
        self._seen |= shown.keys()
        return {name for name, text in shown.items() if is_marked(text, WAITS)}

    def finish_reading(self) -> list[Event]:
        """Give back what cannot be read, and what has waited too long."""
        for name, error in list(self.unreadable.items()):
            gang = self.reading.gangs.get(name)
            if gang is not None and self.is_mine(gang) and self.waits(gang):
                self.give_back(name, error.message)
        now, gone = self.table.epoch + self.now, list[Event]()
        for name, request in self.rows.waiting():
            if now - request.submit > self.limit * SECOND:
                row = self.give_back(name, f"Poolwise could not place it within {self.limit:g} s")
                gone += [] if row is None else [Withdrawn(row)]
        return gone

    # Commit

    def commit(self, plan: Plan) -> CommitResult:
        """Carry out a plan: starts together, the rest one by one."""
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
                    rejected.append((decision, "Slurm does not change what a running job holds"))
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

    def _next_pass(self, wanted: int | None, again: bool) -> int | None:
        retry = (self.now + RETRY,) if again else ()
        return min((time for time in (wanted, *retry) if time is not None), default=None)

    def _free_nodes(self) -> set[str]:
        """Names of nodes that nobody has; where jobs share nodes, all that are usable."""
        usable = {name for name in self.reading.nodes if self.layout.has(name, self.reading)}
        if not self.settings.whole:
            return usable
        taken = {node for job in self.reading.jobs for node in job.allocated}
        return usable - taken - {node for run in self.released.values() for node in run.nodes}

    def _assign(self, start: Start, free: set[str]) -> SlurmAssignment | str:
        """Choose nodes and licences for a start, or say why not."""
        name = self.table.name(start.job)
        gang = self.reading.gangs.get(name)
        if gang is None or not self.rows.is_waiting(name):
            return "it does not wait any more"
        nodes = self.layout.choose(start.placement, free)
        if nodes is None:
            return "a node is not free any more"
        return SlurmAssignment.of(name, gang, nodes, self.layout, start.placement, frozenset(self.reading.nodes))

    def _release(
        self, chosen: list[tuple[Start, SlurmAssignment]]
    ) -> tuple[list[tuple[Start, int]], list[tuple[Decision, str]]]:
        """Give jobs their nodes, check that they have them, and release them."""
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
            self.is_mine(gang) and not gang[0].held for gang in self.reading.gangs.values() if gang[0].state == "PENDING"
        )
        for start, assignment in ready:
            name = assignment.name
            self.rows.stop_waiting(name)
            number = self.begin_run(name, start)
            self.released[name] = PendingStart(self, number, start.job, start.placement, assignment.all_nodes)
            started.append((start, number))
            log_event(
                "assigned", job=name, decided=decided, nodes=sorted(assignment.all_nodes), licences=dict(assignment.licences)
            )
        try:
            self.session.send([line for _, assignment in ready for line in assignment.release(first)])
        except SlurmTimeoutError as error:
            log_event("silent", logging.WARNING, why=str(error))  # what came of it is read again
        return started, lost

    def _prepare(
        self, chosen: list[tuple[Start, SlurmAssignment]], lost: list[tuple[Decision, str]]
    ) -> list[tuple[Start, SlurmAssignment]]:
        """Assign nodes and licences; returns those that Slurm then shows as they were assigned, the job being what it was."""
        lines = [(assignment, line) for _, assignment in chosen for line in assignment.commands()]
        replies = self.session.send([line for _, line in lines])
        said: dict[str, str] = {}
        for (assignment, _), reply in zip(lines, replies, strict=True):
            if reply:
                said.setdefault(assignment.name, reply)
        read = gangs_of(read_jobs(most_cpus(self.reading.nodes)))
        ready: list[tuple[Start, SlurmAssignment]] = []
        for start, assignment in chosen:
            gang = read.get(assignment.name)
            why = assignment.why_not(gang)
            if not why and gang is not None and not self.unchanged(assignment.name, gang):
                why = "its user has changed it"
            if why:
                lost.append((start, f"{why}{': ' if assignment.name in said else ''}{said.get(assignment.name, '')}"))
            else:
                ready.append((start, assignment))
        return ready

    def _stop_run(self, number: int, requeue: bool) -> str:
        """Stop a run; returns why it could not be."""
        name = self.name_of(number)
        if name is None:
            return "the run is over"
        try:
            if requeue:
                self.session.send([f"requeuehold {name}"])
            else:
                ask("scancel", name)
        except SlurmTimeoutError as error:
            return str(error)
        return ""

    # Give back

    def give_back(self, name: str, reason: str) -> int | None:
        """Release a job to Slurm, without nodes or licences of ours, with the reason in its comment.

        Returns its row where it waited. What fails is tried again: then the job arrives once more after the next reading.
        """
        row, gang = self.set_aside(name), self.reading.gangs.get(name)
        if gang is None:
            return row
        try:
            self.session.send([*cleared(name, gang, self.layout), mark(name, GAVE_BACK)])
            ask("scontrol", "update", f"JobId={name}", f"Comment={gang[0].comment}{SAID}given back to Slurm: {reason}".strip())
            if not any(job.held_by_user for job in gang):
                self.session.send([f"release {leader(name, gang)}"])
        except SlurmTimeoutError as error:
            log_event("silent", logging.WARNING, why=str(error))
            self.aside.discard(name)
            return row
        self.unreadable.pop(name, None)
        self.refused.pop(name, None)
        log_event("given back", logging.WARNING, job=name, why=reason)
        return row

    def give_back_all(self, reason: str) -> int:
        """Give back all jobs of the partition that are held, but by their users; returns how many."""
        held = [name for name, gang in self.reading.gangs.items() if self.is_mine(gang) and self.waits(gang)]
        for name in held:
            self.give_back(name, reason)
        return sum(name in self.aside for name in held)

    def close(self) -> None:
        """End the session with Slurm."""
        self.session.close()


def _may_be_marked(gang: GANG) -> bool:
    """Whether a pending job may have been given back, or held at its submission."""
    return not all(job.held for job in gang) or any(job.held_by_user for job in gang)


def _may_begin_now(gang: GANG) -> bool:
    """Whether a start in the future is Slurm's own: its estimate, or the two minutes after which it starts a requeued job."""
    estimated = not gang[0].held and gang[0].reason != "BeginTime"
    return estimated or (gang[0].restarts > 0 and not gang[0].held_by_user)
