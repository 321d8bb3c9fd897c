"""Calls of Slurm's clients with a timeout; without one, a client retries for a minute while the controller is down."""

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

TIMEOUT_S = 10.0
"""Timeout of one call (s)."""


class SlurmTimeoutError(PoolwiseError):
    """Slurm did not answer in time or returned an error; the controller may be down or restarting."""


def environment() -> dict[str, str]:
    """Return the environment of all client calls: times in seconds since 1970, no time zone, a dumb terminal."""
    return {**os.environ, "SLURM_TIME_FORMAT": "%s", "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def run_client(*command: str, timeout: float = TIMEOUT_S) -> str:
    """Run a client and return its standard output.

    Raises SlurmTimeoutError if the client fails or exceeds the timeout (s), InputError if it is not installed.
    """
    try:
        done = subprocess.run(
            command, env=environment(), capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        raise SlurmTimeoutError(f"{command[0]} did not answer within {timeout:g} s") from None
    except FileNotFoundError:
        remedy = "install Slurm's clients and add them to PATH"
        raise InputError(f"'{command[0]}' is not installed", remedy=remedy) from None
    if done.returncode or b"error:" in done.stderr:  # clients report some errors with exit code 0
        problem = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise SlurmTimeoutError(f"{' '.join(command[:3])}: {problem}")
    return done.stdout.decode(errors="replace")


def retry_until_available(query: Callable[[], T], patience: float = 60.0) -> T:
    """Return the result of a query, retrying once per second while Slurm is unreachable.

    Raises SlurmTimeoutError if Slurm stays unreachable for longer than `patience` (s).
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return query()
        except SlurmTimeoutError as error:
            if time.monotonic() >= deadline:
                raise
            log_event("controller_unreachable", logging.WARNING, why=str(error))
            time.sleep(1.0)
