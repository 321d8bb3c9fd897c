"""Processes that need the same kernel at the same time: one compiles it, whatever becomes of the others."""

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
from poolwise.engines.compile_lock import is_being_compiled, sole_compiler
from poolwise.kernels import jit

KERNEL = ("list_scheduling", "made up")
COMPILER = """
import logging, sys, time
from poolwise.engines import compiled_engine

logging.basicConfig(stream=sys.stdout, format="%(message)s")

def smallest():
    print("at it", flush=True)
    sys.stdin.readline()

compiled_engine.load("list_scheduling", "made up", "made up", "as long as it takes", smallest)
"""
Begin = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Begins a process that loads a kernel; it compiles until it reads a line, if it must compile at all."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    jit.folder.cache_clear()
    begun: list[subprocess.Popen[str]] = []

    def one() -> subprocess.Popen[str]:
        words = [sys.executable, "-c", COMPILER]
        begun.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return begun[-1]

    yield one
    for process in begun:
        process.kill()
        process.communicate()
    jit.folder.cache_clear()


def until(process: subprocess.Popen[str], word: str) -> str:
    """What a process says, up to a line with a word."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if word in line:
            return said
    raise AssertionError(f"it ended without '{word}': {said}")


def test_the_second_of_two_processes_waits_and_loads_what_the_first_has_compiled(begin: Begin) -> None:
    first = begin()
    assert "compiling kernels" in until(first, "at it")
    assert is_being_compiled(*KERNEL) and not jit.is_compiled(*KERNEL)
    second = begin()
    until(second, "waiting for kernels")
    assert "kernels compiled" in first.communicate("\n")[0]
    assert jit.is_compiled(*KERNEL)
    said = second.communicate("\n")[0]
    assert "at it" in said and "compil" not in said.replace("another process compiles", "")
    assert not is_being_compiled(*KERNEL)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_second_compiles_where_the_first_was_stopped(begin: Begin, end: signal.Signals) -> None:
    first = begin()
    until(first, "at it")
    second = begin()
    until(second, "waiting for kernels")
    first.send_signal(end)
    first.communicate()
    assert "compiling kernels" in until(second, "at it")
    second.communicate("\n")
    assert jit.is_compiled(*KERNEL) and not is_being_compiled(*KERNEL)


def test_a_run_goes_on_in_python_code_while_another_process_compiles(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded: list[str] = []
    spawned: list[str] = []
    monkeypatch.setattr(compiling, "_has_two_processors", lambda: True)
    monkeypatch.setattr(compiling, "compile_beside", lambda folder, kind, load: spawned.append(kind))
    kernel = compiling.InterimKernel(KERNEL[0], loaded.append, lambda *arrays: len(arrays), 10)
    first = begin()
    until(first, "at it")
    assert [kernel(KERNEL[1], (1, 2)), kernel(KERNEL[1], (1, 2, 3))] == [2, 3]
    assert (loaded, spawned) == ([], []) and caplog.text.count("another process compiles") == 1
    first.communicate("\n")
    assert kernel(KERNEL[1], (1,)) == 1
    assert (loaded, spawned) == ([KERNEL[1]], [])


def test_a_run_has_its_kernel_compiled_once_another_process_was_stopped_at_it(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawned: list[str] = []
    monkeypatch.setattr(compiling, "_has_two_processors", lambda: True)
    monkeypatch.setattr(compiling, "compile_beside", lambda folder, kind, load: spawned.append(kind))
    kernel = compiling.InterimKernel(KERNEL[0], pytest.fail, lambda *arrays: len(arrays), 10)
    first = begin()
    until(first, "at it")
    kernel(KERNEL[1], ())
    assert not spawned
    first.kill()
    first.wait()
    kernel(KERNEL[1], ())
    assert spawned == [KERNEL[1]]


def test_nothing_is_compiled_beside_another_process_that_does(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    until(begin(), "at it")
    monkeypatch.setattr(compiling.subprocess, "Popen", pytest.fail)
    compiling.compile_beside(*KERNEL, pytest.fail)


def test_each_process_compiles_for_itself_where_the_folder_cannot_be_written(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "poolwise").write_text("a file where the folder should be")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    first, second = begin(), begin()
    for process in (first, second):
        assert "compiling kernels" in until(process, "at it"), "neither waits for the other"


def test_files_that_cannot_be_locked_keep_nobody_from_compiling(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    until(begin(), "at it")
    assert not is_being_compiled(*KERNEL)
    done: list[int] = []
    compiled_engine.load(*KERNEL, "made up", "no time", lambda: done.append(1))
    assert done == [1] and jit.is_compiled(*KERNEL)
    with sole_compiler(*KERNEL, pytest.fail):
        pass
