"""Runs a memory agent until it is stopped, and lets go of everything at its end."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from poolwise.atomic_write import check_writable
from poolwise.errors import InputError
from poolwise.live.endpoints import serve_endpoints
from poolwise.live.logs import log_event
from poolwise.live.memory_agent.agent import MIB, MemoryAgent, Surroundings
from poolwise.live.memory_agent.config import MemoryAgentConfig
from poolwise.live.memory_agent.limits import LimitMover
from poolwise.live.memory_agent.metrics import MemoryAgentMetrics
from poolwise.live.memory_agent.saved_limits import LimitsRecord, SavedLimit
from poolwise.live.single_instance import exclusive_lock

_RELIEVE_EVERY_S = 0.1
"""Seconds between two looks whether a workload cannot go on."""
_WRITE_EVERY = 30
"""Looks between two writings of what was measured in passing."""


def serve_memory_agent(
    config: MemoryAgentConfig,
    *,
    port: int | None,
    dry_run: bool = False,
    seconds: float | None = None,
    around: Surroundings | None = None,
) -> None:
    """Watch workloads and move their limits until SIGTERM, SIGINT or SIGHUP, or for so many seconds; then let go of all.

    A dry run looks, says what it would do, and writes nothing. Raises InputError for want of memory, swap, rights or the
    port, and where a limit could not be given back.
    """
    around = around or Surroundings()
    with ExitStack() as stack:
        stop = stack.enter_context(_stopping())
        record = None if dry_run else stack.enter_context(_holding(config.file.state))
        agent = _agent(config, record, around)
        if port is not None:
            host, chosen = stack.enter_context(serve_endpoints(agent.metrics.registry, lambda: "", port))
            log_event("listening", host=host, port=chosen)
        measurements = None if dry_run else config.file.measurements
        if measurements is not None:
            check_writable(measurements)
            agent.passing.read(measurements)
        try:
            agent.mover.let_go(but=[one.group for one in config.file.workload])
            _refuse_risks(agent)
            _run(agent, stop, measurements, seconds)
        finally:
            refused = agent.mover.let_go()
            if measurements is not None:
                agent.passing.write(measurements)
        if refused:
            raise _not_given_back(config, refused)
        log_event("stopped")


def let_go_of_all(config: MemoryAgentConfig, around: Surroundings | None = None) -> None:
    """Give groups back the limits that a killed agent has left; raises InputError where the kernel refuses."""
    with _holding(config.file.state) as record:
        if refused := _agent(config, record, around or Surroundings()).mover.let_go():
            raise _not_given_back(config, refused)


def _agent(config: MemoryAgentConfig, record: LimitsRecord | None, around: Surroundings) -> MemoryAgent:
    metrics = MemoryAgentMetrics()
    return MemoryAgent(config, LimitMover(record, around.root, metrics), around, metrics)


def _not_given_back(config: MemoryAgentConfig, refused: list[SavedLimit]) -> InputError:
    groups = ", ".join(taken.group for taken in refused)
    remedy = "give the command again with --let-go as root, or write the limits that the record names by hand"
    return InputError(f"limits could not be given back: {groups}", file=config.file.state, remedy=remedy)


@contextmanager
def _holding(folder: Path) -> Iterator[LimitsRecord]:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        remedy = "run as root, or name a folder of your own as 'state'"
        raise InputError(f"cannot be made: {error.strerror}", file=folder, remedy=remedy) from error
    with exclusive_lock(folder, "memory agent"):
        yield LimitsRecord(folder)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that a request to end sets."""
    stop = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(agent: MemoryAgent, stop: threading.Event, measurements: Path | None, seconds: float | None) -> None:
    clock, every = agent.around.clock, agent.config.file.every / 1e9
    begun, looks = clock(), 0
    while not stop.is_set() and (seconds is None or clock() - begun < seconds):
        agent.control_step()
        looks += 1
        if measurements is not None and looks % _WRITE_EVERY == 0:
            agent.passing.write(measurements)
        rests_until = clock() + every
        while not stop.wait(max(0.0, min(_RELIEVE_EVERY_S, rests_until - clock()))) and clock() < rests_until:
            agent.relieve()


def _refuse_risks(agent: MemoryAgent) -> None:
    """See that the memory of the file is there, and swap for what will not be local; a dry run is told only."""
    file, problem = agent.config.file, None
    free, held = agent.around.available(), 0
    for watched in agent.watched.values():
        if watched.identity is not None:
            held += watched.look()[1].local
    if free + held < (file.memory + file.reserve) * MIB:
        there = (free + held) // MIB
        problem = InputError(
            f"{there} MiB are free or held by the workloads; {file.memory + file.reserve} MiB are needed, reserve included",
            field="memory",
            remedy="give out less memory, keep less in reserve, or end other programs",
        )
    elif not agent.around.swap_free():
        remedy = "set up swap in memory (zram), or to remote memory"
        problem = InputError("there is no free swap for what is not local", field="swap", remedy=remedy)
    if problem is not None and agent.mover.record is not None:
        raise problem
    if problem is not None:
        log_event("would refuse to start", logging.WARNING, why=str(problem))
