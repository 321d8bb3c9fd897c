"""Control loop of a live run: drives a platform with a scheduler until it is stopped.

A run may be killed at any point. State that the cluster does not store is written to a file after each pass that changed it;
the next run reads it from there.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from poolwise.atomic_write import write_whole
from poolwise.errors import InputError
from poolwise.interfaces import Scheduler
from poolwise.live.platform import LivePlatform, Pass, PassObserver
from poolwise.loop import Loop, LoopResult
from poolwise.model import Arrival, CommitResult, Continuation, EventBatch, Start


def read_continuation(path: Path | None) -> Continuation | None:
    """Return the continuation that an earlier run saved, None without a file; raise InputError for other content."""
    if path is None or not path.exists():
        return None
    try:
        return Continuation.from_json(path.read_text(encoding="utf-8"))
    except InputError as error:
        raise InputError(error.message, file=path, field=error.field, remedy="move the file away to start without it") from None
    except UnicodeDecodeError:
        raise InputError("not the saved state of a live run", file=path, remedy="move it away to start without it") from None


def drive(
    platform: LivePlatform,
    scheduler: Scheduler,
    *,
    seed: int = 0,
    continued: Continuation | None = None,
    keep: Path | None = None,
    observers: Sequence[PassObserver] = (),
    seconds: float | None = None,
) -> LoopResult:
    """Drive a platform until it stops: on SIGTERM or SIGINT, when its events end, or after a number of seconds.

    The platform must have been created with `continued`, the state that an earlier run saved (`read_continuation`). The state
    for the next run is written to the file `keep` after each pass that changed it.
    """
    loop = Loop(platform, scheduler, seed, continued)
    with stopped_by_signals(platform.stop), stopped_after(seconds, platform.stop):
        for batch in platform.events():
            began, loop.commit_seconds = time.monotonic(), 0.0
            outcome = loop.step(batch)
            done = Pass(batch, outcome, loop, platform.snapshot(), time.monotonic() - began, loop.commit_seconds)
            if keep is not None and _changed(batch, outcome):
                write_whole(keep, (Continuation.of(loop.queue, seed).to_json() + "\n").encode())
            for observer in observers:
                observer.observe_pass(done)
            loop.result.refused.clear()  # a run may last for years
            loop.result.rejected.clear()
    loop.result.waiting = tuple(loop.queue.jobs.tolist())
    return loop.result


def _changed(batch: EventBatch, outcome: CommitResult) -> bool:
    """Return whether a pass changed the state that the next run needs: the known jobs, or the waiting ones."""
    arrived = any(isinstance(event, Arrival) for event in batch.events)
    return arrived or any(isinstance(decision, Start) for decision in outcome.committed)


@contextmanager
def stopped_by_signals(stop: Callable[[], None], *more: signal.Signals) -> Iterator[None]:
    """Call `stop` on SIGTERM, SIGINT and `more`. Outside the main thread, signal handlers are not changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGTERM, signal.SIGINT, *more)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stopped_after(seconds: float | None, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` after a number of seconds; None sets no limit."""
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def make_folder(folder: Path, mode: int = 0o755) -> None:
    """Create a folder unless it exists; raise InputError if that is not permitted."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=mode)
    except OSError as error:
        remedy = "run as root, or configure a folder that you can write"
        raise InputError(f"cannot create the folder: {error.strerror}", file=folder, remedy=remedy) from error


@contextmanager
def exclusive_lock(folder: Path, who: str) -> Iterator[None]:
    """Create and lock a folder; raise InputError if another process of the kind `who` holds the lock."""
    make_folder(folder, 0o700)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another {who} is using this folder", file=folder, remedy="stop it, or name another folder as 'state'"
            ) from None
        yield
    finally:
        os.close(handle)
