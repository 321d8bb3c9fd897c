"""Searches from beginning to end: what they keep when they are killed, what they say, and what they refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.factory import models_of, scheduler_of
from poolwise.files.scheduler import load_scheduler
from poolwise.metrics import Outcomes, fairness, slowdown
from poolwise.runner import Local
from poolwise.search.answer import OPENINGS, SearchResult, run_search
from poolwise.search.objectives import FARES, JobObjectives
from poolwise.search.problem import OrderSearchProblem, load_search
from poolwise.search.workloads import fares_on
from poolwise.studies.cells import workload_of

SMALL = Path(__file__).parent / "small.toml"


def search(out: Path, *, open_test: bool = False, **set_: Any) -> SearchResult:
    return run_search(load_search(SMALL, set_), out, Local(1), open_test=open_test, tell=lambda line: None)


def content(result: SearchResult) -> dict[str, bytes]:
    names = ("search.json", "orders.csv", "candidates.csv", "scheduler.toml")
    return {name: (result.folder / name).read_bytes() for name in names}


def test_an_answer_is_the_same_again_and_nothing_is_run_twice(tmp_path: Path) -> None:
    first = search(tmp_path / "a")
    assert len(first.candidates) == 12 and first.chosen is not None and (tmp_path / "a" / "optuna.journal").is_file()
    assert content(search(tmp_path / "b")) == content(first)

    class Refuse(Local):
        def results(self, bench: Any, trials: Mapping[str, Any], worth: int = 1) -> Generator[Any, None, None]:
            assert not trials, "it was tried before"
            yield from ()

    again = run_search(load_search(SMALL), tmp_path / "a", Refuse(), open_test=False, tell=lambda line: None)
    assert content(again) == content(first)
    assert content(search(tmp_path / "c", **{"budget.seed": 1})) != content(first)


def test_what_was_chosen_can_be_run_as_a_scheduler(tmp_path: Path) -> None:
    result = search(tmp_path)
    assert result.chosen is not None
    read = load_scheduler(tmp_path / "scheduler.toml")
    assert scheduler_of(read) == scheduler_of(result.chosen.candidate.section)


def test_killed_in_the_middle_it_comes_to_the_same_answer(tmp_path: Path) -> None:
    whole = search(tmp_path / "whole")
    out = tmp_path / "killed"
    script = (
        "import sys; from pathlib import Path; from poolwise.search.answer import run_search\n"
        "from poolwise.search.problem import load_search; from poolwise.runner import Local\n"
        f"run_search(load_search({str(SMALL)!r}), Path({str(out)!r}), Local(1), open_test=False, tell=lambda line: None)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    tried = out / "tried.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not tried.exists() or tried.read_bytes().count(b"\n") < 8):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    known = tried.read_bytes().count(b"\n")
    assert known >= 8
    with tried.open("ab") as file:
        file.write(b'{"key": "half a li')  # what a writer leaves that is killed in the middle of a line
    again = search(out)
    assert content(again) == content(whole)
    lines = tried.read_bytes().splitlines()
    assert all(json.loads(line) for line in lines)
    assert len({json.loads(line)["key"] for line in lines}) == len(lines)


def test_the_test_is_opened_on_demand_and_counted(tmp_path: Path) -> None:
    closed = search(tmp_path)
    assert closed.opened == 0 and not (tmp_path / OPENINGS).exists()
    assert all("test" not in judged.on for judged in closed.judged)
    assert any("still closed" in note for note in closed.notes)
    once = search(tmp_path, open_test=True)
    assert once.opened == 1 and once.chosen is not None and once.chosen.on["test"]["d10"].workloads == 3
    assert [judged.role for judged in once.judged if "test" in judged.on] == ["found", "known"], "the chosen one alone"
    assert not any("opened" in note for note in once.notes)
    twice = search(tmp_path, open_test=True)
    assert twice.opened == 2 and any("opened 2 times" in note for note in twice.notes)
    log = [json.loads(line) for line in (tmp_path / OPENINGS).read_text().splitlines()]
    assert [entry["opening"] for entry in log] == [1, 2] and log[0]["chosen"] == dict(once.chosen.candidate.settings)
    assert search(tmp_path).opened == 2, "looked at once, it stays so"


def test_fares_are_those_of_a_run_of_its_own() -> None:
    """The slim measures in kept arrays, against a simulation and the metrics of studies."""
    found: OrderSearchProblem = load_search(SMALL)
    cell = found.splits["train"][0]
    fares = fares_on(cell, 10.0, [found.baseline.section])[0]
    truth, estimate = models_of(cell.performance, cell.seed)

    def outcomes(section: Any) -> Outcomes:
        how = scheduler_of(section, cell.warm_up)
        return Outcomes.of(simulate(cell.machine, workload_of(cell), how, truth=truth, estimate=estimate).schedule)

    mine, fcfs = outcomes(found.baseline.section), outcomes(cell.baseline().scheduler)
    waits = slowdown.wait_s(mine)
    assert fares.bounded_slowdown == pytest.approx(float(np.exp(np.log(slowdown.bounded_slowdown(mine)).mean())), rel=1e-12)
    assert fares.longest_wait == waits.max() > 0 and fares.p99_wait == np.percentile(waits, 99)
    benefit = fairness.waiting_benefit_s(mine, fcfs)
    assert fares.d10 == pytest.approx(fairness.extreme_discrimination(benefit, 10) / 60, rel=1e-12)


def test_the_guards_speak(tmp_path: Path) -> None:
    alone = {"objectives.minimize": ["bounded_slowdown"], "objectives.at_most": {}, "budget.candidates": 4}
    notes = " ".join(search(tmp_path, **alone).notes)
    assert "nothing bounds the waits" in notes and "are short" in notes
    assert "D10" in " ".join(search(tmp_path).notes)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("space.scheduler.order.x", {"least": 1.0}, "give least and most, or values"),
        ("space.scheduler.order.x", {"least": 2.0, "most": 1.0}, "least must be less than most"),
        ("space.scheduler.order.x", {"least": 0.0, "most": 1.0, "log": True}, "log needs a least above 0"),
        ("space.machine", {"least": 0.0, "most": 1.0}, "only the scheduler may be searched"),
        ("objectives.minimize", ["slowness"], "slowness"),
        ("objectives.baseline", "nobody.toml", "no such file: nobody.toml"),
        ("splits.test.0.seeds.values", [5, 2], "is in the train split too"),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(path: str, value: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        if path.startswith("space."):
            text = SMALL.read_text()
            written = ", ".join(f"{k} = {str(v).lower()}" for k, v in value.items())  # type: ignore[attr-defined]
            file = tmp_path / "wrong.toml"
            file.write_text(text.replace("[space]\n", f'[space]\n"{path.removeprefix("space.")}" = {{ {written} }}\n'))
            load_search(file)
        else:
            load_search(SMALL, {path: value})
    assert said in str(error.value)
    assert ".toml" in str(error.value)


def test_a_setting_that_does_not_exist_is_said_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(SMALL.read_text().replace("rise.runtime", "rise.runtimes"))
    with pytest.raises(InputError, match=r"wrong\.toml, line 10, .*runtimes"):
        load_search(file)


def test_fares_have_a_name_each() -> None:
    assert JobObjectives._fields == FARES
