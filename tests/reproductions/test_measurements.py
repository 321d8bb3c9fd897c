"""Cached measurements of reproductions: damaged records and records of other code are not reused."""

from dataclasses import dataclass

import numpy as np
import pytest

from poolwise import code_fingerprint
from poolwise.errors import InputError
from poolwise.reproductions import measurements
from poolwise.reproductions.fair_memory.claims import FairMemoryResults
from poolwise.reproductions.fair_memory.runs import RunGroup
from poolwise.reproductions.irop.runs import IropCase
from poolwise.reproductions.measurements import Measurer
from poolwise.runner import Local
from tests.helpers.kept_trials import spoil, written


@dataclass(frozen=True)
class Case:
    number: int


def double(case: Case) -> dict:
    return {"twice": 2 * case.number, "pair": (case.number, None)}


def test_damaged_record_is_measured_again_and_intact_one_is_reused(tmp_path):
    cases = [Case(k) for k in (1, 2, 2)]
    first = Measurer(tmp_path, Local(1))(cases, double)
    assert first == {Case(k): {"twice": 2 * k, "pair": [k, None]} for k in (1, 2)}
    before = written(tmp_path)
    one, other = before
    spoil(tmp_path, one)
    ran = []
    assert Measurer(tmp_path, Local(1))(cases, lambda case: ran.append(case) or double(case)) == first
    assert len(ran) == 1 and written(tmp_path)[other] == before[other]


def test_one_and_two_processes_measure_the_same(tmp_path):
    cases = [IropCase("first-fit", "relative", 0.5, 0.25, seed, 6, 9) for seed in range(3)]
    one, two = (Measurer(tmp_path / str(jobs), Local(jobs))(cases, IropCase.run) for jobs in (1, 2))
    assert [one[case]["objective"] for case in cases] == [two[case]["objective"] for case in cases]


def test_code_change_aborts_the_run_and_keeps_finished_measurements(tmp_path, monkeypatch):
    now = ["first"]

    def measured(case: Case) -> dict:
        now[0] = "second" if case.number == 2 else now[0]  # simulates an edit of a source file
        return double(case)

    monkeypatch.setattr(measurements, "measurement_fingerprint", lambda module: now[0])
    with pytest.raises(InputError, match="changed while the reproduction ran"):
        Measurer(tmp_path, Local(1))([Case(k) for k in range(5)], measured)
    assert len(written(tmp_path)) == 3


def test_fair_memory_group_round_trips_through_the_cache_exactly(tmp_path):
    """A group is the unit from which an interrupted run resumes; rows, samples and NaN values must survive."""
    rows = [
        {"machine": "juwels", "seed": 0, "size_tb": 6, "mean_wait_s": 0.1 + 0.2, "benefit_s": float("nan"), "rejected": 3.0}
    ]
    samples = {("juwels", "slowdown", "rack", "6"): np.array([1.0, 1 / 3, np.nan]), ("juwels", "degradation"): np.zeros(0)}
    result = {
        "rows": [list(map(list, row.items())) for row in rows],
        "samples": [[list(name), values.tolist()] for name, values in samples.items()],
    }
    group = RunGroup("juwels", 0, "rack", 6)
    for _ in range(2):  # first measured, then read from the cache
        found = FairMemoryResults.of([Measurer(tmp_path, Local(1))([group], lambda group: result)[group]])
        assert [list(row) for row in found.rows] == [list(row) for row in rows]
        np.testing.assert_equal([dict(row) for row in found.rows], rows)
        assert list(found.samples) == list(samples)
        assert all(np.array_equal(found.samples[name], values, equal_nan=True) for name, values in samples.items())


def test_measurements_depend_on_simulation_code_but_not_on_report_code():
    for name in ("fair_memory.runs", "vinesim.setups", "irop.runs", "nvme_composition.cells", "drmaestro.cells"):
        reached = code_fingerprint.reached(f"poolwise.reproductions.{name}")
        own = "reproductions/" + name.replace(".", "/") + ".py"
        simulation = (
            {"engines/simulate.py", "policies/backfill/easy.py", "loop.py"}
            if name != "irop.runs"
            else {"batch/methods/irop.py"}
        )
        assert {own, "units.py", *simulation} <= reached
        assert not any(path.startswith(("report/", "cli/", "compare/", "live/")) or "/figures" in path for path in reached)


def test_fingerprint_changes_with_code_and_data_but_not_with_claims(tmp_path):
    root = tmp_path / "poolwise"
    files = {
        "engines/one.py": "from poolwise.loop import go",
        "loop.py": "def go(): import poolwise.inner",
        "inner.py": "",
        "report.py": "",
        "catalog/machines/a.toml": "nodes = 1",
        "catalog/reproductions/claims.csv": "a",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)

    def current() -> str:
        measurements.measurement_fingerprint.cache_clear()
        code_fingerprint.sources.cache_clear()
        return measurements.measurement_fingerprint("poolwise.engines.one", root)

    first = current()
    for name in files:
        (root / name).write_text(files[name] + "\n# changed")
        assert (current() != first) == (name not in ("report.py", "catalog/reproductions/claims.csv")), name
        (root / name).write_text(files[name])
    assert current() == first
