"""Concurrent processes that need the same kernel: exactly one compiles it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poolwise.engines import compiled_engine, compiling
from poolwise.engines.compile_lock import compile_lock, is_being_compiled
from poolwise.kernels import jit

pytestmark = pytest.mark.long

KERNEL = ("list_scheduling", "made up")
COMPILER = """
import logging, sys, time
from poolwise.engines import compiled_engine

logging.basicConfig(stream=sys.stdout, format="%(message)s")

def smallest():
    print("at it", flush=True)
    sys.stdin.readline()

compiled_engine.load("list_scheduling", "made up", "made up", 1.0, smallest)
"""
StartProcess = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def start_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartProcess]:
    """Starts processes that load a kernel; compilation, if necessary, lasts until the process reads a line."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    jit.cache_folder.cache_clear()
    processes: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        words = [sys.executable, "-c", COMPILER]
        processes.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()
    jit.cache_folder.cache_clear()


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """Return the output of a process up to a line with a word."""
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if word in line:
            return output
    raise AssertionError(f"process ended without '{word}': {output}")


def test_second_process_waits_and_loads_the_compiled_kernel(start_process: StartProcess) -> None:
    first = start_process()
    assert "compiling kernels" in read_until(first, "at it")
    assert is_being_compiled(*KERNEL) and not jit.is_compiled(*KERNEL)
    second = start_process()
    read_until(second, "waiting for another process")
    assert "kernels compiled" in first.communicate("\n")[0]
    assert jit.is_compiled(*KERNEL)
    output = second.communicate("\n")[0]
    assert "at it" in output and "compil" not in output.replace("waiting for another process to compile", "")
    assert not is_being_compiled(*KERNEL)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_second_process_compiles_if_the_first_is_killed(start_process: StartProcess, end: signal.Signals) -> None:
    first = start_process()
    read_until(first, "at it")
    second = start_process()
    read_until(second, "waiting for another process")
    first.send_signal(end)
    first.communicate()
    assert "compiling kernels" in read_until(second, "at it")
    second.communicate("\n")
    assert jit.is_compiled(*KERNEL) and not is_being_compiled(*KERNEL)


def test_run_uses_python_code_while_another_process_compiles(
    start_process: StartProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded: list[str] = []
    spawned: list[str] = []
    monkeypatch.setattr(compiling, "_has_two_processors", lambda: True)
    monkeypatch.setattr(compiling, "compile_in_background", lambda folder, kind, load: spawned.append(kind))
    kernel = compiling.InterimKernel(KERNEL[0], loaded.append, lambda *arrays: len(arrays), 10)
    first = start_process()
    read_until(first, "at it")
    assert [kernel(KERNEL[1], (1, 2)), kernel(KERNEL[1], (1, 2, 3))] == [2, 3]
    assert (loaded, spawned) == ([], []) and caplog.text.count("another process is compiling") == 1
    first.communicate("\n")
    assert kernel(KERNEL[1], (1,)) == 1
    assert (loaded, spawned) == ([KERNEL[1]], [])


def test_run_starts_compilation_after_another_process_is_killed(
    start_process: StartProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawned: list[str] = []
    monkeypatch.setattr(compiling, "_has_two_processors", lambda: True)
    monkeypatch.setattr(compiling, "compile_in_background", lambda folder, kind, load: spawned.append(kind))
    kernel = compiling.InterimKernel(KERNEL[0], pytest.fail, lambda *arrays: len(arrays), 10)
    first = start_process()
    read_until(first, "at it")
    kernel(KERNEL[1], ())
    assert not spawned
    first.kill()
    first.wait()
    kernel(KERNEL[1], ())
    assert spawned == [KERNEL[1]]


def test_no_background_compilation_while_another_process_compiles(
    start_process: StartProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_until(start_process(), "at it")
    monkeypatch.setattr(compiling.subprocess, "Popen", pytest.fail)
    compiling.compile_in_background(*KERNEL, pytest.fail)


def test_processes_compile_independently_without_a_writable_cache(
    start_process: StartProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "poolwise").write_text("a file where the folder should be")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    first, second = start_process(), start_process()
    for process in (first, second):
        assert "compiling kernels" in read_until(process, "at it"), "no process waits for the other"


def test_compilation_works_without_file_locks(start_process: StartProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    read_until(start_process(), "at it")
    assert not is_being_compiled(*KERNEL)
    done: list[int] = []
    compiled_engine.load(*KERNEL, "made up", 0.0, lambda: done.append(1))
    assert done == [1] and jit.is_compiled(*KERNEL)
    with compile_lock(*KERNEL, pytest.fail):
        pass
