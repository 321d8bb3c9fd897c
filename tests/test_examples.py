"""Examples of property tests: fixed in CI, new and more of them on request, and repeatable by their seed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.data import ROOT

TEST = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=5)
@given(st.integers())
def test_numbers(number):
    print("drawn", number)
"""


def run(folder: Path, *options: str, **environment: str) -> tuple[list[str], str]:
    """Return the numbers that a property test draws, and the output."""
    (folder / "test_numbers.py").write_text(TEST)
    variables = {name: value for name, value in os.environ.items() if name not in ("CI", "POOLWISE_EXAMPLES")}
    command = (sys.executable, "-m", "pytest", "-s", "-p", "conftest", "-p", "no:cacheprovider", folder, *options)
    done = subprocess.run(command, cwd=ROOT, env=variables | environment, capture_output=True, text=True, check=True)
    return re.findall(r"drawn (-?\d+)", done.stdout), done.stdout


@pytest.mark.long
def test_ci_draws_the_same_examples(tmp_path: Path) -> None:
    first, output = run(tmp_path, CI="true")
    assert first == run(tmp_path, CI="true")[0] and len(first) == 5
    assert "hypothesis-seed" not in output


@pytest.mark.long
def test_more_examples_are_new_and_repeated_by_the_printed_seed(tmp_path: Path) -> None:
    first, output = run(tmp_path, CI="true", POOLWISE_EXAMPLES="4")
    other, _ = run(tmp_path, CI="true", POOLWISE_EXAMPLES="4")
    assert len(first) == len(other) == 20 and first != other
    (seed,) = re.findall(r"POOLWISE_EXAMPLES=4 pytest (--hypothesis-seed=\d+)", output)
    assert run(tmp_path, seed, POOLWISE_EXAMPLES="4")[0] == first
