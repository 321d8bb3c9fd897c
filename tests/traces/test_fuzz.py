"""Tests of a sample of the damaged logs of `python -m tests.fuzz`, and of its ability to detect failures."""

import json
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from poolwise import registry
from poolwise.errors import InputError
from poolwise.traces.read import read
from tests.fuzz import cases
from tests.fuzz.__main__ import main, run_in_subprocess
from tests.fuzz.originals import MAKERS, originals

KNOWN = originals()


def test_fuzzer_covers_every_registered_format():
    assert set(MAKERS) == {name for name in registry.names("formats")}


def test_undamaged_logs_are_read(tmp_path):
    for name, several in KNOWN.items():
        for original in several:
            path = tmp_path / original.name
            path.write_bytes(original.content)
            assert len(read(path, original.machines[0], format=name, **original.options[0])) >= 1


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_log_is_read_or_rejected_with_clear_error(seed):
    tally = cases.run_many(KNOWN, seed, range(600))
    assert tally.failed == []
    assert sum((tally.read + tally.refused).values()) == 600
    assert set(tally.read) == set(KNOWN)
    assert set(tally.refused) == set(KNOWN)


def test_case_number_determines_input(tmp_path):
    seen = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        cases.run(KNOWN, 5, 42, tmp_path / folder, cases.Tally())
        (file,) = (tmp_path / folder).iterdir()
        seen.append(file.read_bytes())
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (SystemExit(3), "SystemExit: 3"),
        (InputError("", remedy="nothing"), "an uninformative error"),
        (InputError("bad", file="/elsewhere", remedy="x"), "an uninformative error"),
        (InputError("bad"), "an error without a remedy"),
    ],
    ids=str,
)
def test_fuzzer_detects_unclear_errors(tmp_path, monkeypatch, raised, message):
    def fails(*_, **__):
        raise raised

    monkeypatch.setattr(cases, "read", fails)
    tally = cases.Tally()
    cases.run(KNOWN, 0, 7, tmp_path, tally)
    ((number, text),) = tally.failed
    assert (number, message in text) == (7, True)


def test_crashed_process_fails_only_its_case(monkeypatch):
    crashed = []

    class Pool:
        def __init__(self, *_):
            pass

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda *_: None  # noqa: E731

        def submit(self, task, seed, numbers, current):
            future = Future()
            if 13 in numbers:
                current.write_text("13")
                crashed.append(numbers)
                future.set_exception(BrokenProcessPool())
            else:
                future.set_result(task(seed, numbers, current))
            return future

    monkeypatch.setattr("tests.fuzz.__main__.ProcessPoolExecutor", Pool)
    tally, after = run_in_subprocess(0, range(10, 20))
    assert (crashed, after, tally.failed) == ([range(10, 20)], 14, [(13, "the process crashed")])
    assert sum((tally.read + tally.refused).values()) == 3


@pytest.mark.long
def test_command_resumes_where_it_stopped(tmp_path):
    state = tmp_path / "state.json"
    for count in ("20", "30"):
        assert main(["--state", str(state), "--count", count]) == 0
    progress = json.loads(state.read_text())
    assert progress["done"] == sum({**progress["read"]}.values()) + sum(progress["refused"].values()) == 30
    whole = cases.run_many(KNOWN, 0, range(30))
    assert progress["read"] == dict(sorted(whole.read.items()))
