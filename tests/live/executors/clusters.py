"""A real Dask cluster of several processes on this computer, on free ports; they leave no files or processes behind."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[3]


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def start(folder: Path, name: str, *words: object, **variables: str) -> subprocess.Popen[bytes]:
    """Start a program in its own session and folder, with its output in NAME.log."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), **variables}
    (folder / name).mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [str(word) for word in words], stdout=log, stderr=log, cwd=folder / name, env=environment, start_new_session=True
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and all of its child processes."""
    try:
        children = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        children = []
    for member in (process, *children):
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


@dataclass
class DaskProcesses:
    """A scheduler and workers as processes with one thread and a folder each."""

    folder: Path
    workers: int = 2
    port: int = field(default_factory=free_port)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        words = (sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", self.port, "--no-dashboard")
        return self._keep(start(self.folder, "scheduler", *words))

    def start_worker(self, number: int) -> subprocess.Popen[bytes]:
        words = (sys.executable, "-m", "dask", "worker", self.address, "--nthreads", 1, "--no-dashboard", "--death-timeout", 30)
        return self._keep(start(self.folder, f"worker{number}", *words))

    def _keep(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        self.started.append(process)
        return process

    def processes(self) -> list[psutil.Process]:
        """Return the processes that run cells: children of nannies, which restart them when they die."""
        children = [
            child
            for process in self.started
            if process.poll() is None
            for child in psutil.Process(process.pid).children(recursive=True)
        ]
        return [process for process in children if "spawn_main" in " ".join(_words(process))]

    def __enter__(self) -> DaskProcesses:
        self.start_scheduler()
        for number in range(self.workers):
            self.start_worker(number)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.started:
            end(process)


def is_listening(port: int) -> bool:
    """Return whether a process listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _words(process: psutil.Process) -> list[str]:
    try:
        return [*process.cmdline()]
    except psutil.Error:
        return []


@contextmanager
def every(seconds: float, action: Callable[[], None]) -> Iterator[None]:
    """Run an action every few seconds while the context is open."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def kill_one(processes: list[psutil.Process], killed: list[int], draw: random.Random) -> None:
    """Kill a random process with SIGKILL, like a failing computer."""
    if processes:
        victim = draw.choice(sorted(processes, key=lambda process: process.pid))
        try:
            os.kill(victim.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        killed.append(victim.pid)


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds; raises TimeoutError."""
    end_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end_at:
            raise TimeoutError
        time.sleep(0.1)


class Count:
    """Progress that counts the saved results."""

    done = 0

    def begin(self, total: int, done: int, damaged: int) -> None:
        self.before = done

    def advance(self, label: str, seconds: float) -> None:
        self.done += 1
