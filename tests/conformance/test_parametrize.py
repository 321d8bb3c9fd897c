"""Checks as parameters of a pytest test, as users run them: passed, failed, expected to fail, skipped."""

import subprocess
import sys
from pathlib import Path

import pytest

import poolwise
from poolwise.policies import SJF, Easy

TEST = """
import numpy as np
import poolwise
from poolwise.interfaces import QueuePolicy

class Random(QueuePolicy):
    kind = "opaque"

    def priority(self, queue, snapshot):
        return np.random.default_rng().random(len(queue))

@poolwise.parametrize_with_checks(poolwise.policies.SJF, Random(), expected_failures=EXPECTED)
def test_contract(check):
    check()
"""


def run(folder: Path, expected: dict[str, str]) -> str:
    (folder / "test_own.py").write_text(TEST.replace("EXPECTED", repr(expected)))
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "--rootdir", folder, folder]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stdout


def test_each_promise_is_a_case(tmp_path: Path) -> None:
    output = run(tmp_path, {})
    assert "PASSED test_own.py::test_contract[SJF: is deterministic]" in output
    assert "FAILED test_own.py::test_contract[Random: is deterministic]" in output
    assert "two calls with the same queue returned different priorities" in output


@pytest.mark.long
def test_expected_failure_is_reported_and_must_fail(tmp_path: Path) -> None:
    output = run(tmp_path, {"is deterministic": "draws random numbers"})
    assert "XFAIL test_own.py::test_contract[Random: is deterministic] - draws random numbers" in output
    assert "FAILED test_own.py::test_contract[SJF: is deterministic]" in output, "it is expected to fail, and does not"


def test_unknown_promise_is_rejected() -> None:
    with pytest.raises(poolwise.InputError, match=r"no object promises 'is fast'\n.*is deterministic"):
        poolwise.parametrize_with_checks(SJF(), expected_failures={"is fast": "never"})


def test_promises_are_those_of_the_results() -> None:
    from poolwise.conformance.dispatch import promises_of

    for thing in (SJF(), Easy(), poolwise.performance.RemoteMemory()):
        assert promises_of(thing) == tuple(result.name for result in poolwise.check(thing))
