"""Control loop of the memory agent: samples workloads, learns their slowdown curves, and moves their memory limits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from poolwise.live.logs import log_event
from poolwise_agents.memory_agent.allocation import decide_limits
from poolwise_agents.memory_agent.config import MemoryAgentConfig, WatchedWorkloadSection
from poolwise_agents.memory_agent.curve import STALLED_SLOWDOWN
from poolwise_agents.memory_agent.groups import WatchedGroup
from poolwise_agents.memory_agent.limits import LimitMover
from poolwise_agents.memory_agent.metrics import MemoryAgentMetrics
from poolwise_agents.memory_agent.passive_profile import PassiveProfile
from poolwise_agents.memory_agent.workload import TrackedWorkload
from poolwise_agents.profiling.control_groups import ROOT
from poolwise_agents.profiling.program_run import memory_available
from poolwise_agents.profiling.zram import swaps

MIB = 2**20
_SETTLE_STEPS = 2  # control steps after a move until samples no longer reflect the move itself
_FILL_STEPS = 5  # control steps after a move during which workloads may still fill additional memory


@dataclass(frozen=True)
class Host:
    """Memory of the node, read by functions that tests can replace."""

    root: Path = ROOT  # mount point of control groups
    available: Callable[[], int] = memory_available  # bytes that programs can allocate without swapping
    swap_free: Callable[[], int] = lambda: sum(free for _, free in swaps())  # bytes of free swap
    clock: Callable[[], float] = time.monotonic  # time (s)


class MemoryAgent:
    """Watches the workloads of a configuration and moves their limits; raises InputError if there are no control groups."""

    def __init__(self, config: MemoryAgentConfig, mover: LimitMover, host: Host, metrics: MemoryAgentMetrics) -> None:
        self.config, self.mover, self.host, self.metrics = config, mover, host, metrics
        self.passive_profile = PassiveProfile()
        self.watched = {
            section.name: WatchedGroup.find(section.group, section.progress, host.root) for section in config.file.workload
        }
        self.tracked: dict[str, TrackedWorkload] = {}
        self._unmanaged: dict[str, int] = {}  # name of a workload whose limit the agent no longer sets -> identity of its group
        self._since_move = _SETTLE_STEPS

    def control_step(self) -> None:
        """Sample all workloads once and move limits if that helps."""
        self._since_move += 1
        for section in self.config.file.workload:
            self._observe(section)
        self.metrics.update(self.tracked.values(), self.memory())
        if self._since_move < _SETTLE_STEPS or (
            self._since_move < _FILL_STEPS and any(workload.grows for workload in self.tracked.values())
        ):
            return
        self._move_limits()

    def relieve_stalled(self) -> None:
        """Give memory to workloads that are stalled by their limit (version 1); if none is available, restore their limit."""
        for workload in list(self.tracked.values()):
            limit, name = workload.limit, workload.section.name
            if limit is None or not workload.watched.is_stalled:
                continue
            self.metrics.failures.labels("stalled").inc()
            log_event("workload_stalled", logging.WARNING, workload=name, limit=limit)
            workload.curve = workload.curve.add_sample(self.host.clock(), limit, STALLED_SLOWDOWN, sure=True)
            self._move_limits()
            if workload.limit is not None and workload.limit <= limit:
                log_event("memory_unavailable", logging.ERROR, workload=name)
                self.mover.restore(workload)
                self._stop_managing(workload)

    def memory(self) -> int:
        """Return the bytes to distribute: the configured memory minus unmanaged groups, or less if the node runs short."""
        file = self.config.file
        held = sum(workload.held.local for workload in self.tracked.values())
        within = max(0, self.host.available() + held - file.reserve * MIB)
        return max(0, min(file.memory * MIB - self._unmanaged_bytes(), within))

    def _move_limits(self) -> None:
        names = list(self.tracked)
        observed = [self.tracked[name].observed() for name in names]
        limits = decide_limits(self.memory(), self.host.swap_free(), observed)
        if limits is not None:
            moves = [(self.tracked[name], limit) for name, limit in zip(names, limits, strict=True)]
            if self.mover.move(moves, self.memory(), self.host.clock()):
                self._since_move = 0

    def _observe(self, section: WatchedWorkloadSection) -> None:
        name, watched = section.name, self.watched[section.name]
        workload, identity = self.tracked.get(name), watched.identity
        try:
            if workload is not None and workload.identity != identity:
                log_event("workload_gone", workload=name)
                self.mover.forget(workload)
                workload = None
                del self.tracked[name]
            if identity is None or self._unmanaged.get(name) == identity:
                return
            if workload is None:
                self._start_tracking(section, watched, identity)
            elif watched.limit() != workload.limit:
                log_event("external_limit_change", logging.WARNING, workload=name, limit=watched.limit())
                self.mover.restore(workload)
                self._stop_managing(workload)
            else:
                self._update_curve(workload)
        except OSError as error:
            log_event("cgroup_read_failed", logging.WARNING, workload=name, why=error.strerror)
            self.metrics.failures.labels("read").inc()

    def _start_tracking(self, section: WatchedWorkloadSection, watched: WatchedGroup, identity: int) -> None:
        max_limit = self.mover.limit_before(section.group, watched)
        workload = TrackedWorkload.start(section, watched, identity, max_limit, self.config.profiles.get(section.name))
        self.tracked[section.name] = workload
        log_event(
            "workload_watched",
            workload=section.name,
            group=section.group,
            limit=workload.limit,
            limit_before=max_limit,
            local=workload.held.local,
        )

    def _update_curve(self, workload: TrackedWorkload) -> None:
        file = self.config.file
        estimate = workload.sample(file.clock, file.page_in / 1e9)
        if self._since_move < _SETTLE_STEPS:
            return
        phase = workload.curve.phase
        workload.update_curve(self.host.clock(), estimate, file.remember / 1e9)
        if workload.curve.phase != phase:
            log_event(
                "phase_change", workload=workload.section.name, total=workload.curve.total, slowdown=round(workload.slowdown, 3)
            )
        if estimate is not None:
            remote = max(0.0, 1 - workload.local / workload.curve.total)
            self.passive_profile.add(workload.section.name, remote, estimate.slowdown, estimate.source)

    def _stop_managing(self, workload: TrackedWorkload) -> None:
        self._unmanaged[workload.section.name] = workload.identity
        del self.tracked[workload.section.name]

    def _unmanaged_bytes(self) -> int:
        """Return the bytes in unmanaged groups; a recreated group is managed again starting with the next step."""
        total = 0
        for name, identity in list(self._unmanaged.items()):
            if self.watched[name].identity != identity:
                del self._unmanaged[name]
                continue
            try:
                total += self.watched[name].read_counters()[1].local
            except OSError:
                continue  # the group has disappeared
        return total
