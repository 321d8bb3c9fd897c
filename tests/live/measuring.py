"""Profiling with real control groups and swap of this computer; skipped, with the reason, without permissions."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poolwise.errors import InputError
from poolwise_agents.profiling.control_groups import ROOT, find_hierarchy
from poolwise_agents.profiling.zram import CONTROL, swaps, top_priority_swaps

TOUCH = "import random; b = bytearray(24 << 20); r = random.Random(0).randrange\nfor _ in range(150_000): b[r(24 << 20)] = 1"
SLEEP = "import time; b = bytearray(24 << 20); time.sleep(60)"


def unavailable_reason() -> str:
    """Return the reason for which profiling is not possible here, "" if it is."""
    if os.geteuid() != 0:
        return "measuring a program with less local memory requires root"
    try:
        find_hierarchy()
    except InputError as error:
        return f"no control groups: {error.message}"
    missing = [program for program in ("mkswap", "swapon", "swapoff") if shutil.which(program) is None]
    if missing or not CONTROL.exists():
        return f"swap in memory cannot be created: {', '.join(missing) or 'the kernel does not support zram'}"
    if others := top_priority_swaps():
        return f"another measurement is running, with swap on {others[0]}"
    return ""


pytestmark = [
    pytest.mark.skipif(bool(unavailable_reason()), reason=unavailable_reason() or "available"),
]


def start(tmp_path: Path, program: str, *options: str) -> subprocess.Popen[str]:
    """Start to measure a Python program, with SIGINT as by default: a shell starts processes in the background without it."""
    words = [sys.executable, "-m", "poolwise", "profile", "measure", "--out", tmp_path / "m.csv", *options]
    words = ["env", "--default-signal=INT", *words, "--", sys.executable, "-c", program]
    return subprocess.Popen(words, stdout=-1, stderr=-1, text=True, cwd=tmp_path)


def resources() -> tuple[list[str], list[str]]:
    """Return the control groups of Poolwise, and the swaps."""
    return sorted(str(path) for path in (ROOT / "memory").glob("poolwise-*")), sorted(name for name, _ in swaps())


def wait_for_program(measuring: subprocess.Popen[str]) -> Path:
    """Wait for a process in the measurement's group and return the group's folder."""
    group = find_hierarchy().group(f"poolwise-{measuring.pid}")
    for _ in range(500):
        if group.processes():
            return group.memory
        time.sleep(0.02)
    measuring.kill()
    raise AssertionError(f"no program in {group.memory}: {measuring.communicate()}")


def test_program_is_measured_and_resources_are_removed(tmp_path: Path) -> None:
    before = resources()
    measuring = start(tmp_path, TOUCH, "--make-swap", "--shares", "1,0.5", "--repeat", "1", "--json")
    printed, errors = measuring.communicate(timeout=120)
    assert measuring.returncode == 0, errors
    assert resources() == before
    rows = list(csv.DictReader((tmp_path / "m.csv").read_text().splitlines()))
    assert [row["remote"] for row in rows] == ["0", "0.5"]
    local, half = rows
    assert 24 < float(local["peak_mib"]) < 60
    assert float(half["swapped_mib"]) > 5 and int(half["major_faults"]) > int(local["major_faults"]) + 1000
    about = json.loads(printed)["conditions"]
    assert about["page_in"]["us"]["p50"] > about["page_in"]["there_us"]
    assert json.loads((tmp_path / "m.csv.provenance.json").read_text())["conditions"] == about


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_stopped_measurement_removes_its_resources(tmp_path: Path, signal_: signal.Signals) -> None:
    before = resources()
    measuring = start(tmp_path, SLEEP, "--shares", "1", "--repeat", "1")
    group = wait_for_program(measuring)
    measuring.send_signal(signal_)
    measuring.communicate(timeout=60)
    assert measuring.returncode == 128 + signal_
    assert resources() == before and not group.exists() and not (tmp_path / "m.csv").exists()


def test_next_start_removes_the_resources_of_a_killed_measurement(tmp_path: Path) -> None:
    before = resources()
    killed = start(tmp_path, SLEEP, "--shares", "1", "--repeat", "1")
    group = wait_for_program(killed)
    killed.kill()
    killed.communicate(timeout=60)
    assert group.exists()
    after = start(tmp_path, "b = bytearray(8 << 20)", "--shares", "1", "--repeat", "1")
    _, errors = after.communicate(timeout=60)
    assert after.returncode == 0, errors
    assert resources() == before and not group.exists()


def test_failed_program_is_reported_with_its_output(tmp_path: Path) -> None:
    before = resources()
    measuring = start(tmp_path, "raise SystemExit('no such data')", "--shares", "1", "--repeat", "1")
    _, errors = measuring.communicate(timeout=60)
    assert measuring.returncode == 2 and "exit code 1: no such data" in errors and "Traceback" not in errors
    assert resources() == before


def test_missing_swap_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    if swaps():
        pytest.skip("this computer has swap")
    measuring = start(tmp_path, SLEEP)
    _, errors = measuring.communicate(timeout=60)
    assert measuring.returncode == 2 and "--make-swap" in errors
