"""Runs a memory agent until it is stopped, then restores all limits."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

from poolwise.atomic_write import check_writable
from poolwise.errors import InputError
from poolwise.live.control_loop import exclusive_lock, stopped_by_signals
from poolwise.live.endpoints import serve_endpoints
from poolwise.live.logs import log_event
from poolwise_agents.memory_agent.agent import MIB, Host, MemoryAgent
from poolwise_agents.memory_agent.config import MemoryAgentConfig
from poolwise_agents.memory_agent.limits import LimitMover, LimitsRecord, SavedLimit
from poolwise_agents.memory_agent.metrics import MemoryAgentMetrics

_STALL_CHECK_S = 0.1  # interval at which stalled workloads are checked for (s)
_SAVE_STEPS = 30  # control steps between two writes of passive measurements


def serve_memory_agent(
    config: MemoryAgentConfig,
    *,
    port: int | None,
    dry_run: bool = False,
    seconds: float | None = None,
    host: Host | None = None,
) -> None:
    """Watch workloads and move their limits until SIGTERM, SIGINT or SIGHUP, or for a limited time; then restore all limits.

    A dry run logs the limits that it would set and writes nothing. Raises InputError if memory, swap, permissions or the port
    are not available, or if a limit could not be restored.
    """
    host = host or Host()
    with ExitStack() as stack:
        stop = threading.Event()
        stack.enter_context(stopped_by_signals(stop.set, signal.SIGHUP))
        if not dry_run:
            stack.enter_context(exclusive_lock(config.file.state, "memory agent"))
        agent = _agent(config, None if dry_run else LimitsRecord(config.file.state), host)
        if port is not None:
            stack.enter_context(serve_endpoints(agent.metrics.registry, lambda: "", port))
        measurements = None if dry_run else config.file.measurements
        if measurements is not None:
            check_writable(measurements)
            agent.passive_profile.read(measurements)
        try:
            agent.mover.restore_all(but=[section.group for section in config.file.workload])
            _check_resources(agent)
            _run(agent, stop, measurements, seconds)
        finally:
            rejected = agent.mover.restore_all()
            if measurements is not None:
                agent.passive_profile.write(measurements)
        if rejected:
            raise _restore_error(config, rejected)
        log_event("stopped")


def restore_all_limits(config: MemoryAgentConfig, host: Host | None = None) -> None:
    """Restore the limits of groups that a killed agent has limited; raises InputError if the kernel rejects one."""
    with exclusive_lock(config.file.state, "memory agent"):
        if rejected := _agent(config, LimitsRecord(config.file.state), host or Host()).mover.restore_all():
            raise _restore_error(config, rejected)


def _agent(config: MemoryAgentConfig, record: LimitsRecord | None, host: Host) -> MemoryAgent:
    metrics = MemoryAgentMetrics()
    return MemoryAgent(config, LimitMover(record, host.root, metrics), host, metrics)


def _restore_error(config: MemoryAgentConfig, rejected: list[SavedLimit]) -> InputError:
    groups = ", ".join(saved.group for saved in rejected)
    remedy = "run the command again with --release as root, or write the limits in the record manually"
    return InputError(f"cannot restore the limits of {groups}", file=config.file.state, remedy=remedy)


def _run(agent: MemoryAgent, stop: threading.Event, measurements: Path | None, seconds: float | None) -> None:
    clock, every = agent.host.clock, agent.config.file.every / 1e9
    started_at, steps = clock(), 0
    while not stop.is_set() and (seconds is None or clock() - started_at < seconds):
        agent.control_step()
        steps += 1
        if measurements is not None and steps % _SAVE_STEPS == 0:
            agent.passive_profile.write(measurements)
        next_step = clock() + every
        while not stop.wait(max(0.0, min(_STALL_CHECK_S, next_step - clock()))) and clock() < next_step:
            agent.relieve_stalled()


def _check_resources(agent: MemoryAgent) -> None:
    """Check that the configured memory, and swap for the remote part, are available; a dry run only logs the problem."""
    file, problem = agent.config.file, None
    held = sum(watched.read_counters()[1].local for watched in agent.watched.values() if watched.identity is not None)
    present = (agent.host.available() + held) // MIB
    if present < file.memory + file.reserve:
        problem = InputError(
            f"{present} MiB are free or held by the workloads, but memory and reserve need {file.memory + file.reserve} MiB",
            field="memory",
            remedy="reduce memory or reserve, or stop other programs",
        )
    elif not agent.host.swap_free():
        remedy = "set up swap in memory (zram) or on remote memory"
        problem = InputError("no free swap for memory that is not local", field="swap", remedy=remedy)
    if problem is not None and agent.mover.record is not None:
        raise problem
    if problem is not None:
        log_event("resource_check_failed", logging.WARNING, why=str(problem))
