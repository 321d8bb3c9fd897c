"""On this computer's own control groups and swap; skipped, with the reason, where the rights are missing."""

import csv
import ctypes
import json
import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise.profiling import kernel_instructions as do
from poolwise.profiling.added_latency import PROGRAM, TRACEPOINT
from poolwise.profiling.cleanup import belongings
from poolwise.profiling.control_groups import ROOT, find_hierarchy
from poolwise.profiling.experiment import MIB
from poolwise.profiling.kernel_program import CALLS, Tracepoint, running
from poolwise.profiling.zram import CONTROL, ZramSwap, swaps, swaps_ranked_first

LIBC, SYSTEM = ctypes.CDLL(None), f"{platform.system()} {platform.machine()}"
GET_NEXT, GET_FILE, GET_ABOUT, NAME_AT = (
    11,
    13,
    15,
    64,
)  # commands of bpf(2), and where a program's name stands in its description

TOUCH = "import random; b = bytearray(24 << 20); r = random.Random(0).randrange\nfor _ in range(150_000): b[r(24 << 20)] = 1"
SLEEP = "import time; b = bytearray(24 << 20); time.sleep(60)"


def why_not() -> str:
    """Why nothing can be measured here, empty if it can."""
    if os.geteuid() != 0:
        return "measuring a program under less local memory needs root"
    try:
        find_hierarchy()
    except InputError as error:
        return f"no control groups: {error.message}"
    missing = [program for program in ("mkswap", "swapon", "swapoff") if shutil.which(program) is None]
    if missing or not CONTROL.exists():
        return f"no swap in memory can be made: {', '.join(missing) or 'the kernel has no zram'}"
    if others := swaps_ranked_first():
        return f"another measurement is under way, with swap on {others[0]}"
    return ""


pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "everything is there"),
]


def start(tmp_path: Path, program: str, *options: str) -> subprocess.Popen[str]:
    """Begin to measure a Python program."""
    words = [sys.executable, "-m", "poolwise", "profile", "measure", "--out", tmp_path / "m.csv", *options]
    return subprocess.Popen([*words, "--", sys.executable, "-c", program], stdout=-1, stderr=-1, text=True, cwd=tmp_path)


def left() -> tuple[list[str], list[str]]:
    """Control groups of ours, and swaps."""
    return sorted(str(path) for path in (ROOT / "memory").glob("poolwise-*")), sorted(name for name, _ in swaps())


def until_it_runs(measuring: subprocess.Popen[str]) -> Path:
    """Wait for the group that its program runs in."""
    group = find_hierarchy().group(f"poolwise-{measuring.pid}")
    for _ in range(500):
        if group.processes():
            return group.memory
        time.sleep(0.02)
    measuring.kill()
    raise AssertionError(f"no program in {group.memory}: {measuring.communicate()}")


def test_a_program_is_measured_and_nothing_stays(tmp_path: Path) -> None:
    before = left()
    measuring = start(tmp_path, TOUCH, "--make-swap", "--shares", "1,0.5", "--repeat", "1", "--json")
    said, errors = measuring.communicate(timeout=120)
    assert measuring.returncode == 0, errors
    assert left() == before
    rows = list(csv.DictReader((tmp_path / "m.csv").read_text().splitlines()))
    assert [row["remote"] for row in rows] == ["0", "0.5"]
    local, half = rows
    assert 24 < float(local["peak_mib"]) < 60
    assert float(half["swapped_mib"]) > 5 and int(half["major_faults"]) > int(local["major_faults"]) + 1000
    about = json.loads(said)["conditions"]
    assert about["page_in"]["us"]["p50"] > about["page_in"]["there_us"]
    assert about["wanted_latency_ns"] == 0 and about["added_latency"] == "not added: none was asked for"
    assert json.loads((tmp_path / "m.csv.provenance.json").read_text())["conditions"] == about


def delays() -> int:
    """How many programs the kernel has that add a latency."""
    found, before = 0, 0
    while True:
        about = struct.pack("<III", before, 0, 0).ljust(16, b"\0")
        words = ctypes.create_string_buffer(about, len(about))
        if LIBC.syscall(CALLS[SYSTEM]["bpf"], GET_NEXT, words, len(about)) < 0:
            return found
        before = struct.unpack_from("<I", words, 4)[0]
        asked = ctypes.create_string_buffer(struct.pack("<III", before, 0, 0), 12)
        program = LIBC.syscall(CALLS[SYSTEM]["bpf"], GET_FILE, asked, 12)
        told = ctypes.create_string_buffer(80)
        asked = ctypes.create_string_buffer(struct.pack("<IIQ", program, len(told), ctypes.addressof(told)), 16)
        assert LIBC.syscall(CALLS[SYSTEM]["bpf"], GET_ABOUT, asked, 16) == 0
        os.close(program)
        found += told.raw[NAME_AT:].startswith(PROGRAM.encode() + b"\0")


def why_no_delay() -> str:
    """Why no latency can be added here, empty if it can."""
    if why_not():
        return why_not()
    try:
        found = Tracepoint.find(TRACEPOINT)
        with running("poolwise_test", [do.let(0, 0), do.END], found):
            return ""
    except OSError as error:
        return f"the kernel runs no program of ours: {error}"


slows = pytest.mark.skipif(bool(why_no_delay()), reason=why_no_delay() or "everything is there")


@slows
def test_a_latency_is_added_to_what_a_page_in_takes_and_counted(tmp_path: Path) -> None:
    before = left()
    options = ("--make-swap", "--shares", "1,0.5", "--repeat", "1", "--latency", "20us", "--json")
    measuring = start(tmp_path, TOUCH, *options)
    said, errors = measuring.communicate(timeout=120)
    assert measuring.returncode == 0, errors
    assert left() == before and delays() == 0
    half = list(csv.DictReader((tmp_path / "m.csv").read_text().splitlines()))[1]
    about = json.loads(said)["conditions"]
    assert about["added_latency"].startswith("20 us added to each read of /dev/zram")
    slowed = about["slowed"]
    assert slowed["reads"] > 0.8 * int(half["major_faults"]) and slowed["cut_short"] == 0 and slowed["mean_us"] >= 20
    assert about["page_in"]["us"]["p10"] >= about["page_in_without"]["us"]["p10"] + 19
    assert float(half["cpu_s"]) > 20e-6 * int(half["major_faults"]) * 0.8  # it is processor time of the program


@slows
def test_a_killed_measurement_slows_nothing_any_more(tmp_path: Path) -> None:
    killed = start(tmp_path, TOUCH, "--make-swap", "--shares", "1,0.5", "--repeat", "1000", "--latency", "5us")
    deadline = time.monotonic() + 60
    while not delays() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert delays() == 1
    killed.kill()
    killed.communicate(timeout=60)
    while delays() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert delays() == 0
    after = start(tmp_path, "b = bytearray(8 << 20)", "--shares", "1", "--repeat", "1")
    _, errors = after.communicate(timeout=60)
    assert after.returncode == 0, errors


def test_swap_that_others_use_is_not_slowed(tmp_path: Path) -> None:
    with belongings(tmp_path / "records", "measure") as mine:
        swap = ZramSwap.add()
        mine.add(swap)
        swap.begin(64 * MIB)
        measuring = start(tmp_path, TOUCH, "--shares", "1,0.5", "--repeat", "1", "--latency", "20us", "--json")
        said, errors = measuring.communicate(timeout=120)
        assert measuring.returncode == 0, errors
        about = json.loads(said)["conditions"]
        assert about["added_latency"].startswith("not added: others use this swap too") and about["slowed"] is None


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_stopping_it_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    before = left()
    measuring = start(tmp_path, SLEEP, "--shares", "1", "--repeat", "1")
    group = until_it_runs(measuring)
    measuring.send_signal(how)
    measuring.communicate(timeout=60)
    assert measuring.returncode == 128 + how
    assert left() == before and not group.exists() and not (tmp_path / "m.csv").exists()


def test_the_next_start_takes_away_what_a_killed_one_has_left(tmp_path: Path) -> None:
    before = left()
    killed = start(tmp_path, SLEEP, "--shares", "1", "--repeat", "1")
    group = until_it_runs(killed)
    killed.kill()
    killed.communicate(timeout=60)
    assert group.exists()
    after = start(tmp_path, "b = bytearray(8 << 20)", "--shares", "1", "--repeat", "1")
    _, errors = after.communicate(timeout=60)
    assert after.returncode == 0, errors
    assert left() == before and not group.exists()


def test_a_program_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    before = left()
    measuring = start(tmp_path, "raise SystemExit('no such data')", "--shares", "1", "--repeat", "1")
    _, errors = measuring.communicate(timeout=60)
    assert measuring.returncode == 2 and "exit code 1: no such data" in errors and "Traceback" not in errors
    assert left() == before


def test_without_swap_it_is_refused_with_the_remedy(tmp_path: Path) -> None:
    if swaps():
        pytest.skip("there is swap on this computer")
    measuring = start(tmp_path, SLEEP)
    _, errors = measuring.communicate(timeout=60)
    assert measuring.returncode == 2 and "--make-swap" in errors
