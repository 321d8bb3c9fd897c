"""Cached cases of reproductions: damaged records and records of other inputs or code are not reused."""

import shutil
from dataclasses import dataclass

import numpy as np
import pytest

from poolwise import code_fingerprint
from poolwise.distributions import extension_folders
from poolwise.errors import InputError
from poolwise.runner import Local, Store
from poolwise_reproductions import cases
from poolwise_reproductions.cases import CaseMeasurement, MeasuredCase, Measurer
from poolwise_reproductions.drmaestro.cells import POLICIES, SCENARIOS, DrMaestroCase
from poolwise_reproductions.drmaestro.changes import CHANGES
from poolwise_reproductions.fair_memory.runs import FairMemoryCase
from poolwise_reproductions.irop.runs import IropCase
from poolwise_reproductions.nvme_composition.cells import INFERRED, LoadCalibration, NvmeCase, NvmeLoad, NvmeRun
from poolwise_reproductions.vinesim.setups import Setup
from tests.helpers.kept_trials import spoil, written

RAN: list[int] = []


@dataclass(frozen=True)
class Twice(MeasuredCase):
    number: int

    def inputs(self) -> dict:
        return {}

    def measure(self) -> dict:
        RAN.append(self.number)
        return {"twice": 2 * self.number, "pair": (self.number, float("nan"))}


def test_damaged_record_is_measured_again_and_intact_one_is_reused(tmp_path):
    wanted = [Twice(k) for k in (1, 2, 2)]
    first = Measurer(tmp_path, Local(1))(wanted)
    np.testing.assert_equal(first, {Twice(k): {"twice": 2 * k, "pair": [k, np.nan]} for k in (1, 2)})
    before = written(tmp_path)
    damaged, other = before
    spoil(tmp_path, damaged)
    RAN.clear()
    np.testing.assert_equal(Measurer(tmp_path, Local(1))(wanted), first)
    assert len(RAN) == 1 and written(tmp_path)[other] == before[other]


@pytest.mark.long
def test_one_and_two_processes_measure_the_same(tmp_path):
    wanted = [IropCase("first-fit", "relative", 0.5, 0.25, seed, 6, 9) for seed in range(3)]
    serial, parallel = (Measurer(tmp_path / str(jobs), Local(jobs))(wanted) for jobs in (1, 2))
    assert [serial[case]["objective"] for case in wanted] == [parallel[case]["objective"] for case in wanted]


def test_code_change_aborts_the_run_and_keeps_finished_measurements(tmp_path, monkeypatch):
    """Simulates an edit of a source file while the third case runs."""
    RAN.clear()
    monkeypatch.setattr(cases, "sources", lambda module: "second" if len(RAN) > 2 else "first")
    with pytest.raises(InputError, match="changed while the reproduction ran"):
        Measurer(tmp_path, Local(1))([Twice(k) for k in range(5)])
    assert len(written(tmp_path)) == 3


CASES = (
    FairMemoryCase("juwels", 0, "fm", 6, "nodes only, no extra"),
    Setup(100, "five", data_size=1000, layout="split", contended=True),
    DrMaestroCase(SCENARIOS[0], "network_aware", 1, "half the link use"),
    LoadCalibration(NvmeLoad("high_compute", 0.5, 0)),
    NvmeRun(
        NvmeCase(NvmeLoad("high_compute", 0.5, 1, physics=INFERRED), "disaggregation_aware"), 300.0, 0, 2 * 10**14, True, True
    ),
    IropCase("first-fit", "relative", 0.5, 0.25, 0, 6, 9),
)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_case_measures_the_same_again_from_its_record(tmp_path, case):
    first = Measurer(tmp_path, Local(1))([case])
    assert len(written(tmp_path)) == 1 and first[case]
    np.testing.assert_equal(Measurer(tmp_path, Local(1))([case]), first)
    assert len(written(tmp_path)) == 1


def test_key_depends_on_the_contents_of_changed_profiles():
    """Each change of the profiles has inputs of its own, although they are written to temporary files."""
    inputs = [DrMaestroCase(SCENARIOS[0], "drmaestro", 0, change).inputs() for change in CHANGES]
    assert all(content != other for k, content in enumerate(inputs) for other in inputs[:k])
    assert inputs == [DrMaestroCase(SCENARIOS[0], "drmaestro", 0, change).inputs() for change in CHANGES]
    plain = [DrMaestroCase(SCENARIOS[0], policy, 0).inputs() for policy in POLICIES]
    assert all(content != other for k, content in enumerate(plain) for other in plain[:k])


@pytest.mark.parametrize("case", CASES, ids=lambda case: type(case).__name__)
def test_key_depends_on_simulation_code_but_not_on_report_code(case):
    reached = code_fingerprint.reached(type(case).__module__)
    simulation = {"batch/methods/irop.py"} if isinstance(case, IropCase) else {"engines/simulate.py", "loop.py"}
    assert {type(case).__module__.replace(".", "/") + ".py", "quantities.py", *simulation} <= reached
    reports = ("report/", "cli/", "compare/", "live/", "poolwise_reproductions/cli/", "poolwise_reproductions/report")
    assert not any(path.startswith(reports) or "/figures" in path for path in reached)
    assert CaseMeasurement(type(case)).key(case) == CaseMeasurement(type(case)).key(case)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Return a modifiable copy of this package that the fingerprint reads; other fingerprints are not cached."""
    folder = tmp_path / "poolwise_reproductions"
    shutil.copytree(extension_folders()["poolwise_reproductions"], folder)
    monkeypatch.setattr(code_fingerprint, "extension_folders", lambda: {"poolwise_reproductions": folder})
    code_fingerprint.sources.cache_clear()
    yield folder
    code_fingerprint.sources.cache_clear()


def test_key_depends_on_the_modules_of_this_package_that_a_case_reaches(copied):
    before = CaseMeasurement(Setup).key(CASES[1])
    for name, reached in (
        ("vinesim/setups.py", True),
        ("cases.py", True),
        ("vinesim/claims.py", False),
        ("irop/runs.py", False),
    ):
        text = (copied / name).read_text()
        (copied / name).write_text(f"{text}# changed\n")
        code_fingerprint.sources.cache_clear()
        assert (CaseMeasurement(Setup).key(CASES[1]) != before) is reached, name
        (copied / name).write_text(text)


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
def test_internal_error_names_the_task(tmp_path, jobs):
    cases = [LoadCalibration(load) for load in (None, "")]  # an error in Poolwise: they have no physics
    with pytest.raises(AttributeError) as caught:
        Measurer(tmp_path, Local(jobs))(cases)
    assert any(f"in cell {case}" in caught.value.__notes__ for case in cases)


def test_reproduction_requires_the_write_lock(tmp_path):
    with Store(tmp_path).writing(), pytest.raises(InputError, match="another run is writing"):
        Measurer(tmp_path, Local(1))([LoadCalibration(None)])
