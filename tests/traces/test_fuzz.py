"""A slice of the damaged logs that `python -m tests.fuzz` reads, and that it finds what it looks for."""

import json
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from poolwise import registry
from poolwise.errors import InputError
from poolwise.traces.read import read
from tests.fuzz import cases
from tests.fuzz.__main__ import main, run_apart
from tests.fuzz.originals import MAKERS, originals

KNOWN = originals()


def test_every_registered_format_is_damaged():
    assert set(MAKERS) == {name for name in registry.names("formats")}


def test_undamaged_logs_are_read(tmp_path):
    for name, several in KNOWN.items():
        for original in several:
            path = tmp_path / original.name
            path.write_bytes(original.content)
            assert len(read(path, original.machines[0], format=name, **original.options[0])) >= 1


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_logs_are_read_or_refused_with_a_clear_error(seed):
    tally = cases.run_many(KNOWN, seed, range(600))
    assert tally.failed == []
    assert sum((tally.read + tally.refused).values()) == 600
    assert set(tally.read) == set(KNOWN)
    assert set(tally.refused) == set(KNOWN)


def test_the_same_number_is_the_same_input(tmp_path):
    seen = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        cases.run(KNOWN, 5, 42, tmp_path / folder, cases.Tally())
        (file,) = (tmp_path / folder).iterdir()
        seen.append(file.read_bytes())
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (SystemExit(3), "SystemExit: 3"),
        (InputError("", remedy="nothing"), "an error that says nothing"),
        (InputError("bad", file="/elsewhere", remedy="x"), "an error that says nothing"),
        (InputError("bad"), "an error without a remedy"),
    ],
    ids=str,
)
def test_what_is_looked_for_is_found(tmp_path, monkeypatch, raised, said):
    def fails(*_, **__):
        raise raised

    monkeypatch.setattr(cases, "read", fails)
    tally = cases.Tally()
    cases.run(KNOWN, 0, 7, tmp_path, tally)
    ((number, text),) = tally.failed
    assert (number, said in text) == (7, True)


def test_a_process_that_dies_fails_its_case_alone(monkeypatch):
    died = []

    class Apart:
        def __init__(self, *_):
            pass

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda *_: None  # noqa: E731

        def submit(self, work, seed, numbers, begun):
            future = Future()
            if 13 in numbers:
                begun.write_text("13")
                died.append(numbers)
                future.set_exception(BrokenProcessPool())
            else:
                future.set_result(work(seed, numbers, begun))
            return future

    monkeypatch.setattr("tests.fuzz.__main__.ProcessPoolExecutor", Apart)
    tally, after = run_apart(0, range(10, 20))
    assert (died, after, tally.failed) == ([range(10, 20)], 14, [(13, "the process died")])
    assert sum((tally.read + tally.refused).values()) == 3


@pytest.mark.long
def test_the_command_goes_on_where_it_was_stopped(tmp_path):
    state = tmp_path / "state.json"
    for count in ("20", "30"):
        assert main(["--state", str(state), "--count", count]) == 0
    found = json.loads(state.read_text())
    assert found["done"] == sum({**found["read"]}.values()) + sum(found["refused"].values()) == 30
    whole = cases.run_many(KNOWN, 0, range(30))
    assert found["read"] == dict(sorted(whole.read.items()))
