"""Atomic writes: after any failure, the path holds the old content or the new content."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from poolwise.atomic_write import check_writable, sync_folder, write_whole
from poolwise.errors import InputError

OLD, NEW = b"old" * 1000, b"new" * 500_000


def test_file_is_written_and_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for content in (OLD, NEW, b""):
        write_whole(path, content)
        assert path.read_bytes() == content
        assert [*tmp_path.iterdir()] == [path]
        assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
@pytest.mark.parametrize("before", [None, OLD], ids=["new", "overwrite"])
def test_failed_write_keeps_the_old_file_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException, before: bytes | None
) -> None:
    path = tmp_path / "result.json"
    if before is not None:
        path.write_bytes(before)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    with pytest.raises(InputError if isinstance(error, OSError) else type(error)):
        write_whole(path, NEW)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([] if before is None else [before])


def test_write_flushes_file_before_and_folder_after_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "result.json", []
    flush, rename = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        file = Path(f"/proc/self/fd/{handle}").readlink()
        seen.append(("folder flushed", path.exists()) if file == tmp_path else ("draft flushed", file.stat().st_size))
        flush(handle)

    def replace(self: Path, target: Path) -> Path:
        seen.append(("renamed", self.parent == tmp_path and self.read_bytes() == NEW))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    write_whole(path, NEW)
    assert seen == [("draft flushed", len(NEW)), ("renamed", True), ("folder flushed", True)]


def test_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    """Kill the process after it wrote the temporary file, just before the rename."""
    path = tmp_path / "result.json"
    path.write_bytes(OLD)
    script = (
        "import os, signal, sys; from pathlib import Path; from poolwise.atomic_write import write_whole\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(Path(sys.argv[1]), b'new' * 500000)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script, str(path)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == OLD


def test_reader_sees_the_old_or_the_new_file(tmp_path: Path) -> None:
    path, done, halves = tmp_path / "result.json", threading.Event(), []
    write_whole(path, OLD)

    def read() -> None:
        while not done.is_set():
            content = path.read_bytes()
            if content not in (OLD, NEW):
                halves.append(len(content))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for turn in range(20):
            write_whole(path, NEW if turn % 2 else OLD)
    finally:
        done.set()
        reader.join()
    assert halves == []


def test_unwritable_output_is_an_error_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_writable(tmp_path / "result.json")
    (tmp_path / "there.json").write_bytes(OLD)
    check_writable(tmp_path / "there.json")
    with pytest.raises(InputError, match="is a folder") as caught:
        check_writable(tmp_path)
    assert caught.value.file == tmp_path
    with pytest.raises(InputError, match="does not exist"):
        check_writable(tmp_path / "there.json" / "result.json")
    missing = tmp_path / "missing"
    with pytest.raises(InputError, match="does not exist or is not writable") as caught:
        check_writable(missing / "result.json")
    assert caught.value.file == missing and caught.value.remedy
    assert not missing.exists()
    monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path) == tmp_path and mode & os.W_OK))
    with pytest.raises(InputError, match="is not writable"):
        check_writable(tmp_path / "result.json")


def test_flush_of_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "missing")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_error_reports_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="cannot write the file") as caught:
        write_whole(tmp_path / "result.json", NEW)
    assert (caught.value.file, "free some space" in str(caught.value)) == (tmp_path / "result.json", True)
    assert [*tmp_path.iterdir()] == []


def test_file_size_limit_error_reports_the_path(tmp_path: Path) -> None:
    """Trigger the error of the operating system in a separate process."""
    program = (
        "import resource, sys; from pathlib import Path; from poolwise.atomic_write import write_whole\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); write_whole(Path(sys.argv[1]), b'x' * 5000)"
    )
    path = tmp_path / "result.json"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert f"InputError: {path}: cannot write the file: File too large" in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_content_in_parts_is_written_atomically(tmp_path):
    path = tmp_path / "file"
    write_whole(path, (part for part in (b"one ", b"two")))
    assert path.read_bytes() == b"one two"

    def broken():
        yield b"half"
        raise ValueError

    with pytest.raises(ValueError):
        write_whole(path, broken())
    assert path.read_bytes() == b"one two" and [file.name for file in tmp_path.iterdir()] == ["file"]
