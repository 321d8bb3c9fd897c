"""Calls of Slurm's clients, each with a time limit: without a controller they would try again for a minute."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

from poolwise.errors import InputError, PoolwiseError
from poolwise.live.logs import log_event

T = TypeVar("T")

LIMIT_S = 10.0
"""Seconds that one call may take."""


class SlurmTimeoutError(PoolwiseError):
    """Slurm does not answer, or answers with an error: its controller is down, or the call came at a bad time."""


def environment() -> dict[str, str]:
    """Environment of all calls: times in seconds since 1970, so that no time zone can mislead; a terminal without tricks."""
    return {**os.environ, "SLURM_TIME_FORMAT": "%s", "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def ask(*command: str, limit: float = LIMIT_S) -> str:
    """Run a client and return what it prints.

    Raises SlurmTimeoutError where it fails or takes too long, InputError where it is not installed.
    """
    try:
        done = subprocess.run(
            command, env=environment(), capture_output=True, timeout=limit, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise SlurmTimeoutError(f"{command[0]} did not answer within {limit:g} s") from None
    except FileNotFoundError:
        remedy = "install Slurm's clients, and let PATH find them"
        raise InputError(f"'{command[0]}' is not installed here", remedy=remedy) from None
    if done.returncode or b"error:" in done.stderr:  # a code of 0 comes with errors too
        said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise SlurmTimeoutError(f"{' '.join(command[:3])}: {said}")
    return done.stdout.decode(errors="replace")


def when_it_answers(look: Callable[[], T], patience: float = 60.0) -> T:
    """Look at Slurm, again each second while it is silent: a controller that comes back is no reason to give up.

    Raises SlurmTimeoutError where it is silent for longer than `patience` (s).
    """
    until = time.monotonic() + patience
    while True:
        try:
            return look()
        except SlurmTimeoutError as error:
            if time.monotonic() >= until:
                raise
            log_event("silent", logging.WARNING, why=str(error))
            time.sleep(1.0)
