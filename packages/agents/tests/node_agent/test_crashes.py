"""Test that an agent killed between any two of its writes leaves nothing behind that the next one does not clean up."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[4]


def test_agent_recovers_from_a_kill_at_every_step(tmp_path: Path) -> None:
    whole = ["whole"] if os.environ.get("POOLWISE_ALL_FAULTS") else []
    command = [sys.executable, "-m", "tests.helpers.node_agent_crashes", str(tmp_path), *whole]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    ends = re.fullmatch(r"(\d+) ends\n", done.stdout)
    assert done.returncode == 0 and ends and int(ends[1]) > 80, done.stdout + done.stderr
