"""Waiting for a state of a process, a file or a page: tests poll for it and never assume how long it takes."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.helpers.machine_speed import slowness

LONGEST_S = 120.0
"""Seconds on the reference machine after which a state counts as never reached; a passing test waits far less."""
POLL_S = 0.01


def longest_s() -> float:
    """Return the seconds after which a state counts as never reached on this machine."""
    return LONGEST_S * slowness()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; `what` describes it in the error."""
    end = time.monotonic() + longest_s()
    while not condition():
        assert time.monotonic() < end, f"never true: {what}"
        time.sleep(POLL_S)


async def wait_until_async(condition: Callable[[], bool | Awaitable[bool]], what: str) -> None:
    """Wait until a condition, which may be asynchronous, holds; `what` describes it in the error."""
    end = time.monotonic() + longest_s()
    while True:
        outcome = condition()
        if outcome if isinstance(outcome, bool) else await outcome:
            return
        assert time.monotonic() < end, f"never true: {what}"
        await asyncio.sleep(POLL_S)


async def run_other_tasks() -> None:
    """Let the other tasks of the event loop run until they wait for something."""
    for _ in range(100):
        await asyncio.sleep(0)


def is_alive(process: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        os.kill(process, 0)
        return "zombie" not in Path(f"/proc/{process}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
