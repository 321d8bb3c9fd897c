"""Study files support every setting and metric of the memory pool specs."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from poolwise.errors import InputError
from poolwise.files.factory import models_of, scheduler_of
from poolwise.metrics.memory import (
    degradation,
    throughput_per_memory_dollar,
)
from poolwise.metrics.window import Window
from poolwise.performance.fitting import to_csv
from poolwise.performance.profiles import Profile
from poolwise.performance.remote_memory import Latency
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy, EasyNodesOnly, EasyNoExtra
from poolwise.quantities import SECOND
from poolwise.studies import StudyResult, load, run
from poolwise.studies.distributions import histograms

SPREAD = ("mean", "median", "p90", "p99")
METRICS = {  # metric in the specs, "Measurement" -> columns of results.csv, or quantities of distributions.csv
    "bounded slowdown": [f"{how}_bounded_slowdown" for how in SPREAD],
    "bounded slowdown over the runtime without slowdown": [f"{how}_bounded_slowdown_local" for how in SPREAD],
    "throughput": ["throughput_per_100s"],
    "utilisation": ["utilization"],
    "B": ["benefit_s"],
    "D": ["discrimination_s"],
    "MD": ["marginal_discrimination_s"],
    "D_x": ["discrimination_10pct_s", "discrimination_20pct_s"],
    "MD_x": ["marginal_discrimination_10pct_s", "marginal_discrimination_20pct_s"],
    "memory utilisation": ["mean_memory_utilization", "memory_utilization"],
    "degradation": ["mean_degradation", "share_under_5pct_degradation", "degradation"],
    "throughput per memory dollar": ["memory_dollars", "throughput_per_100s_per_memory_dollar"],
    "... over the baseline's": ["throughput_per_memory_dollar_gain"],
    "share that needs remote memory": ["share_remote_memory"],
    "rejections": ["rejected", "rejected_reasons"],
    "population": ["measured_jobs", "compared_jobs"],
}
THICK = """\
version = 1
[[node]]
name = "thick"
cores = 4
memory = "48 GiB"
[[rack]]
count = 2
nodes = { thick = 4 }
"""


@pytest.fixture(scope="module")
def result(kept_folder: Path) -> StudyResult:
    (kept_folder / "thick.toml").write_text(THICK)
    study = load(kept_folder / "study.toml", {"measure.memory_baseline": "thick.toml", "measure.dollars_per_gb": 2.0})
    return run(study, kept_folder / "out", jobs=1)


def one(folder: Path, **settings: object) -> object:
    """Return the cell of the study with one order and pool, changed by settings."""
    fixed = {"scheduler.order": "fm", "machine.pool.memory.memory": "64 GiB"}
    return load(folder / "study.toml", fixed | {key.replace("__", "."): value for key, value in settings.items()}).cells[0]


def test_results_contain_every_metric_of_the_specs(result):
    results = pl.read_csv(result.folder / "results.csv")
    quantities = set(pl.read_csv(result.folder / "distributions.csv")["quantity"])
    for metric, names in METRICS.items():
        for name in names:
            assert name in quantities or name in results.columns, metric
            assert name in quantities or results[name].null_count() == 0, f"{metric} is not measured"
            if name not in quantities and results[name].dtype == pl.Float64:
                assert results[name].is_not_nan().all(), f"{metric} is not measured"


def test_distributions_match_jobs_and_time(result):
    table = pl.read_csv(result.folder / "distributions.csv")
    assert table["key"].n_unique() == 4
    for cell in result.cells:
        mine = table.filter(key=cell.key)
        assert mine["scheduler.order"].unique().to_list() == [cell.parameters["scheduler.order"]]
        lost = degradation(result.outcomes(cell))[result.population(cell)]
        bins = mine.filter(quantity="degradation")
        assert bins["share"].sum() == pytest.approx(1)
        for low, high, share in bins.select("low", "high", "share").iter_rows():
            assert high - low == pytest.approx(0.05)
            inside = np.count_nonzero((lost >= low - 1e-12) & (lost < high - 1e-12))
            assert share == pytest.approx(inside / len(lost))
        memory = mine.filter(quantity="memory_utilization")
        assert memory["low"].to_list() == pytest.approx(np.arange(10) / 10)
        assert memory["share"].sum() == pytest.approx(1)
        mean = cell.metrics["mean_memory_utilization"]
        assert (memory["low"] * memory["share"]).sum() <= mean <= (memory["high"] * memory["share"]).sum()
        assert histograms(result, cell)["memory_utilization"].share.tolist() == memory["share"].to_list()


def test_memory_over_time_preserves_the_mean(result):
    table = pl.read_csv(result.folder / "memory_over_time.csv")
    for cell in result.cells:
        mine = table.filter(key=cell.key)
        length = mine["end_s"] - mine["begin_s"]
        mean = (mine["memory_utilization"] * length).sum() / length.sum()
        assert mean == pytest.approx(cell.metrics["mean_memory_utilization"])
        window = result.window(cell)
        assert (mine["begin_s"][0], mine["end_s"][-1]) == (window.begin / SECOND, window.end / SECOND)


def test_memory_dollars_are_relative_to_the_memory_baseline(result):
    assert len(result.study.memory_baselines) == 2, "one per order: varied pools do not apply"
    for cell in result.cells:
        baseline = result.memory_baseline(cell)
        assert baseline.pool_memory == 0 and baseline.node_memory == 8 * 48 * 1024
        mine = throughput_per_memory_dollar(result.outcomes(cell), result.window(cell))
        base = throughput_per_memory_dollar(baseline, Window.of(baseline, 5))
        assert cell.metrics["throughput_per_memory_dollar_gain"] == pytest.approx(mine / base)
        assert cell.metrics["memory_dollars"] == pytest.approx(2.0 * result.outcomes(cell).installed_memory / 1024)


def test_memory_baseline_must_exist_and_run_the_same_jobs(folder):
    with pytest.raises(InputError, match="no such file") as caught:
        one(folder, measure__memory_baseline="nowhere.toml")
    assert caught.value.field == "measure.memory_baseline"
    with pytest.raises(InputError, match="unknown shipped machine"):
        one(folder, measure__memory_baseline="catalog:nothing")
    (folder / "thick.toml").write_text(THICK.replace("cores = 4", "cores = 8"))
    with pytest.raises(InputError, match="different core counts") as caught:
        one(folder, measure__memory_baseline="thick.toml")
    assert caught.value.field == "measure.memory_baseline" and caught.value.remedy


@pytest.mark.parametrize(
    ("backfill", "expected"),
    [
        ("easy", Easy()),
        ({"name": "easy", "extra": False}, Easy(extra=False)),
        ("easy_no_extra", EasyNoExtra()),
        ("easy_nodes_only", EasyNodesOnly()),
        ({"name": "conservative", "keep_reservations": True}, Conservative(keep_reservations=True)),
    ],
)
def test_variants_of_backfilling_run(folder, backfill, expected):
    cell = one(folder, scheduler__backfill=backfill)
    assert scheduler_of(cell.scheduler).backfill == expected
    study = load(folder / "study.toml", {"scheduler.backfill": backfill, "scheduler.order": "fm", "workload.jobs": 30})
    done = run(study, folder / "out", jobs=1)
    assert all(measured.metrics["measured_jobs"] == 25 for measured in done.cells)


def test_latency_is_composed_from_settings(folder):
    cell = one(folder, performance__model={"name": "remote_memory", "latency": {"switch": 60, "far_switches": 2}})
    model, _ = models_of(cell.performance, 7)
    assert model.latency == Latency(switch=60, far_switches=2)
    assert (model.near_ns, model.far_ns, model.seed) == (220, 310, 7)
    other = one(folder, performance__model={"name": "remote_memory", "near_ns": 220, "far_ns": 310})
    assert models_of(other.performance, 7)[0].near_ns == 220
    text = (folder / "study.toml").read_text().replace("[vary]", '[vary]\n"performance.model.latency.switch" = [20, 60]')
    (folder / "study.toml").write_text(f'{text}[performance]\nmodel = {{ name = "remote_memory", latency = {{}} }}\n')
    assert {models_of(cell.performance, 0)[0].near_ns for cell in load(folder / "study.toml").cells} == {180, 220}


@pytest.mark.parametrize(
    ("latency", "field", "expected"),
    [
        ({"swich": 60}, "latency.swich", "did you mean 'switch'"),
        ({"switch": -60}, "latency.switch", "at least 0"),
        ({"switch": 2.5}, "latency.switch", "integer"),
        (60, "latency", "got 60"),
    ],
)
def test_invalid_latency_settings_are_errors(folder, latency, field, expected):
    with pytest.raises(InputError, match=r"performance\.model") as caught:
        one(folder, performance__model={"name": "remote_memory", "latency": latency})
    assert caught.value.field == f"performance.model.{field}" and expected in str(caught.value)


def test_each_job_follows_its_own_profile(folder, monkeypatch):
    rows = (folder / "jobs.csv").read_text().splitlines()
    named = [f"{rows[0]},text.profile", *(f"{row},{('steep', 'flat')[k % 2]}" for k, row in enumerate(rows[1:]))]
    (folder / "jobs.csv").write_text("\n".join(named) + "\n")
    profiles = folder / "profiles.csv"
    profiles.write_text(to_csv([Profile("flat", (0.0, 0.9), (0.0, 0.0)), Profile("steep", (0.0, 0.9), (0.0, 0.9))]))
    model = {"name": "memory_profiles", "profiles": "profiles.csv"}
    fixed = {"scheduler.order": "fm", "machine.pool.memory.memory": "64 GiB", "performance.model": model}
    monkeypatch.chdir("/")
    study = load(folder / "study.toml", fixed)
    done = run(study, folder / "out", jobs=1)
    (cell,) = done.cells
    lost, share = degradation(done.outcomes(cell)), np.where(np.arange(60) % 3 == 0, 14 / 30, 0.0)
    assert lost == pytest.approx(np.where(np.arange(60) % 2 == 0, share, 0.0), abs=1e-9)
    assert cell.engine == "reference"
    before = study.cells[0].key
    profiles.write_text(profiles.read_text().replace("0.9", "0.8"))
    assert load(folder / "study.toml", fixed).cells[0].key != before, "the bytes of the profiles count"


def test_file_that_changes_during_a_study_is_an_error(folder):
    profiles = folder / "profiles.csv"
    profiles.write_text(to_csv([Profile("flat", (0.0, 0.9), (0.0, 0.0))]))
    model = {"name": "memory_profiles", "profiles": "profiles.csv", "default": "flat"}
    study = load(folder / "study.toml", {"performance.model": model})
    profiles.write_text(profiles.read_text() + "\n")
    with pytest.raises(InputError, match="changed during the run"):
        run(study, folder / "out", jobs=1)


def test_pass_per_event_is_a_setting_of_a_study(folder):
    """With a pass per event, the first of simultaneous jobs starts before the scheduler sees a shorter one."""
    rows = ["id,submit_ns,nodes,duration_ns,memory_mib"]
    rows += [f"{k + 1},0,8,{(9 - k) * 10**9},0" for k in range(5)]
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    settings = {"scheduler.order": "sjf", "machine.pool.memory.memory": "64 GiB", "measure.warm_up": 0}
    first = {}
    for per_event in (False, True):
        study = load(folder / "study.toml", {**settings, "scheduler.pass_per_event": per_event})
        done = run(study, folder / "out", jobs=1)
        first[per_event] = int(np.argmin(done.outcomes(done.cells[0]).start))
        assert done.facts[study.cells[0].key]["inputs"]["scheduler"]["pass_per_event"] is per_event
    assert first == {False: 4, True: 0}
