"""On this computer's own control groups and swap; skipped, with the reason, where the rights are missing."""

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
from poolwise.measuring.control_groups import ROOT, find_hierarchy
from poolwise.measuring.zram import CONTROL, swaps

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
    measuring = start(tmp_path, TOUCH, "--make-swap", "--shares", "1,0.5", "--repeat", "1", "--latency", "5us", "--json")
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
    assert about["wanted_latency_ns"] == 5000 and about["added_latency"].startswith("not added")
    assert json.loads((tmp_path / "m.csv.provenance.json").read_text())["conditions"] == about


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
