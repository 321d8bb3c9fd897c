"""Study of a whole datacenter on the DLRM trace, which users give by path."""

from pathlib import Path

import numpy as np
import pytest

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.model import Kind
from poolwise.report import resources as report
from poolwise.report.study import study_answer
from poolwise.report.sweep import Sweep
from poolwise.studies import load, load_machine, run
from poolwise.studies.cells import workload_of
from poolwise.traces import read
from tests.helpers.dlrm_rows import CN, HN, REAL, synthetic_trace, table

NAME = "whole-datacenter-dlrm"


def test_all_three_machines_have_equal_resources():
    machines = [load_machine(catalog.find("machines", f"dlrm-{name}")) for name in ("fixed", "servers", "pools")]
    for name in ("cores", "memory", "storage", "gpu"):
        assert len({int(machine.capacity[:, machine.resource(name)].sum()) for machine in machines}) == 1
    inside = [bool((machine.home[machine.of_kind(Kind.DEVICE)] >= 0).all()) for machine in machines]
    assert inside == [True, True, False]
    prices = [float(machine.attributes["price"].sum()) for machine in machines]
    assert prices[0] == prices[2]
    assert prices[2] - prices[1] == (264 - 176) * 1500  # chassis, by the price list in dlrm-pools.toml


def test_missing_trace_path_has_a_remedy():
    with pytest.raises(InputError, match="no such file: disaggregated_DLRM_trace") as caught:
        load(NAME)
    assert caught.value.field == "workload.trace" and "--set workload.trace=PATH" in caught.value.remedy


@pytest.mark.long
def test_report_on_an_excerpt(tmp_path, monkeypatch):
    """300 GPU instances request 72 cores each: a GPU server holds one at a time, pools provide a GPU for each."""
    monkeypatch.chdir(tmp_path)
    gpus = [HN.format(k, k % 3, f"{60 * k},{60 * k},{60 * k + 36000}") for k in range(300)]
    cpus = [CN.format(1000 + k, k % 3, f"{60 * k},{60 * k},{60 * k + 36000}") for k in range(300)]
    table(tmp_path, *gpus, *cpus)
    small = {"workload.options": {"whole": True}, "measure.warm_up": 10, "seeds.count": 1}
    small["vary.scheduler"] = ["catalog:skip-share-fm"]
    result = run(load(NAME, {"workload.trace": "dlrm.csv", **small}), tmp_path / "out", jobs=1)
    ranked = {candidate.machine: candidate for candidate in report.standings(result, Sweep.of(result))}
    assert [cell.jobs for cell in result.cells] == [300] * 3
    assert ranked["dlrm-servers"].slowdown == 1.0
    assert ranked["dlrm-pools"].slowdown == pytest.approx(1.07)
    assert ranked["dlrm-fixed"].slowdown > 1.5
    gpu = {name: candidate.stranded("gpu")[0] for name, candidate in ranked.items()}
    assert gpu["dlrm-servers"] == gpu["dlrm-pools"] == 0 < 0.1 < gpu["dlrm-fixed"]
    page = study_answer(result)
    assert page.headline == "Run dlrm-servers."
    assert any("dlrm-pools" in line and "mean bounded slowdown -" in line for line in list(page.sections.values())[1])
    assert "300 rows were excluded from the trace: CPU instance merged" in " ".join(result.notes())


@pytest.mark.parametrize("trace", ["synthetic_trace", *REAL], ids=["synthetic_trace", *("real" for _ in REAL)])
@pytest.mark.long
def test_each_seed_uses_another_tenth_of_the_trace(trace, tmp_path):
    path = synthetic_trace(tmp_path) if trace == "synthetic_trace" else trace
    study = load(NAME, {"workload.trace": str(path.resolve()), "vary.scheduler": ["catalog:share-fm"]})
    first = [workload_of(next(cell for cell in study.cells if cell.seed == seed)) for seed in (0, 1, 2)]
    assert all(np.array_equal(jobs.id % 10, np.full(len(jobs), seed)) for seed, jobs in enumerate(first))
    all_of_it = read(path, load_machine(catalog.find("machines", "dlrm-roles")))
    assert [jobs.excluded["runtime 0"] for jobs in first] == [all_of_it.excluded["runtime 0"]] * 3
    rows = len(all_of_it) + sum(all_of_it.excluded.values())
    assert all(0 < len(jobs) == rows - sum(jobs.excluded.values()) for jobs in first)
    if trace in REAL:
        assert [len(jobs) for jobs in first] == [1647, 1679, 1664]


def test_set_paths_try_the_current_folder_first(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    rows = [HN.format(k, 0, f"{k},{k},{k + 9}") for k in range(5)]
    table(tmp_path / "there", *rows)
    study = tmp_path / "there" / "study.toml"
    study.write_text(catalog.find("studies", NAME).read_text().replace("disaggregated_DLRM_trace.csv.gz", "nowhere.csv"))
    monkeypatch.chdir(tmp_path)
    few = {"workload.options": {}, "seeds.count": 1}
    assert Path(load(study, {"workload.trace": "dlrm.csv", **few}).cells[0].workload.path) == tmp_path / "there" / "dlrm.csv"
    table(tmp_path, *rows[:2])
    assert Path(load(study, {"workload.trace": "dlrm.csv", **few}).cells[0].workload.path) == tmp_path / "dlrm.csv"
