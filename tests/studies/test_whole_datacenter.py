"""Catalog study of a whole datacenter, on fewer jobs: equal machines, combined components, consistent answers."""

import numpy as np
import polars as pl
import pytest

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.files.factory import models_of, scheduler_of
from poolwise.metrics.intervals import mean_interval
from poolwise.model import Kind
from poolwise.performance.combined import Combined
from poolwise.performance.cpu_frequency import CpuFrequency
from poolwise.performance.device_network import DeviceNetwork
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.nvme.policies import NvmeFirstFit
from poolwise.report import resources as report
from poolwise.report.study import study_answer
from poolwise.report.sweep import Sweep
from poolwise.studies import load, load_machine, run

LINEAR, PRICES = "catalog:datacenter", "catalog:datacenter"
FEWER = {
    "workload.settings": {"jobs": 50, "mean_gap_s": 15.0, "most_gpus": 2},
    "measure.warm_up": 10,
    "seeds.count": 2,
    "vary.scheduler": ["catalog:pack-fm", "catalog:flow-compose-fm"],
}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run(load("whole-datacenter", FEWER), tmp_path_factory.mktemp("whole"), jobs=1)


def test_both_machines_have_equal_resources():
    pooled, fixed = (load_machine(catalog.find("machines", f"whole-datacenter{end}")) for end in ("", "-fixed"))
    for name in ("cores", "memory", "storage", "devices"):
        assert pooled.capacity[:, pooled.resource(name)].sum() == fixed.capacity[:, fixed.resource(name)].sum()
    kinds = [sorted(m.type[o] for o in m.of_kind(Kind.DEVICE).tolist()) for m in (pooled, fixed)]
    assert kinds[0] == kinds[1]
    assert not (pooled.home >= 0).any()
    assert (fixed.home[fixed.of_kind(Kind.DEVICE)] >= 0).all()
    added = 4 * (2000 + 9000)  # frames of the memory pools and switches
    prices = [m.attributes["price"][m.kind != Kind.LINK].sum() for m in (pooled, fixed)]
    assert prices[0] - prices[1] == added


def test_components_are_configured_by_name():
    cell = next(c for c in load("whole-datacenter").cells if "flow-compose-fm" in str(c.parameters["scheduler"]))
    scheduler = scheduler_of(cell.scheduler)
    assert type(scheduler).__name__ == "ListFlow"
    assert scheduler.placement == Pooled()
    truth, estimate = models_of(cell.performance, 0)
    assert [type(model).__name__ for model in truth.models] == ["CpuFrequency", "DeviceNetwork", "NvmeSharing", "Transfer"]
    assert estimate is None


def test_policies_and_models_can_be_nested():
    made = Component(name="pooled", nvme={"name": "nvme_first_fit", "share": True}).make("placements")
    assert made == Pooled(NvmeFirstFit(share=True))
    parts = ["cpu_frequency", {"name": "device_network", "profiles": "catalog:gpu-pods"}, "nvme_sharing"]
    made = Component(name="combined", models=parts).make("models")
    assert made == Combined((CpuFrequency(), DeviceNetwork("catalog:gpu-pods"), NvmeSharing()))
    for wrong, field in (("nvme_first_fitt", "placement"), (3, "nvme"), ({"name": "nvme_first_fit", "shares": True}, "shares")):
        with pytest.raises(InputError) as error:
            Component(name="pooled", nvme=wrong).make("placements")
        assert error.value.field == field


def test_nested_models_get_the_seed_of_the_cell():
    section = load("whole-datacenter").cells[0].performance
    other = section.model_copy(update={"model": Component(name="combined", models=["remote_memory", "nvme_sharing"])})
    assert models_of(other, 7)[0] == Combined((RemoteMemory(seed=7), NvmeSharing()))
    inner = {"name": "combined", "models": ["remote_memory", {"name": "remote_memory", "seed": 3}]}
    nested = section.model_copy(update={"model": Component(name="combined", models=[inner])})
    assert models_of(nested, 7)[0] == Combined((Combined((RemoteMemory(seed=7), RemoteMemory(seed=3))),))


@pytest.mark.long
def test_resources_have_their_own_table(result):
    frame = pl.read_csv(result.folder / "resources.csv")
    assert len(frame) == len(result.cells) * 7
    assert set(frame["resource"]) == {"bandwidth", "cores", "memory", "p100", "storage", "t4", "v100"}
    assert ((frame["used"] + frame["stranded"] >= 0) & (frame["used"] + frame["stranded"] <= 1 + 1e-9)).all()
    assert frame["mean_watts"].min() > 3000
    assert set(frame["purchase_dollars"]) == {384576.0, 428576.0, 516576.0}


@pytest.mark.long
def test_rows_that_differ_only_in_watts_and_prices_share_a_run(result):
    """The schedule is the same, and each table changes only its own number."""
    assert len(result.cells) == 4 * len(result.study.runs) == 4 * len({cell.key for cell in result.cells})
    for key in {cell.key for cell in result.cells}:
        same = [cell for cell in result.cells if cell.key == key]
        assert all(cell.metrics == same[0].metrics for cell in same)
        at = {(str(c.parameters["power"]), str(c.parameters["prices"])): (c.watts, c.dollars) for c in same}
        for off in ("", "-off"):
            row = [at[f"catalog:datacenter{off}", f"catalog:datacenter{dear}"] for dear in ("", "-dear-fabric")]
            assert row[0][0] == row[1][0]
            pooled = str(same[0].parameters["machine"]).endswith("datacenter")
            assert row[1][1] - row[0][1] == (4 * (4000 + 18000) if pooled else 0)
        assert at["catalog:datacenter-off", "catalog:datacenter"][0] < at["catalog:datacenter", "catalog:datacenter"][0]


def test_catalog_tables_match_the_machine_files(result):
    """The catalog tables have the numbers of the machine files, with memory listed separately."""
    own = run(load("whole-datacenter", FEWER | {"vary.power": [LINEAR], "vary.prices": [PRICES]}), result.folder, jobs=1)
    for cell in own.cells:
        resources = own.facts[cell.key]["resources"]
        assert cell.watts == pytest.approx(resources["watts"], rel=1e-3)
        assert cell.dollars == resources["dollars"]


def test_report_recommends_the_least_slowdown_with_matching_numbers(result):
    ranked = report.standings(result, Sweep.of(result))
    frame = result.frame().with_columns(label=pl.col("machine") + pl.col("scheduler"))
    means = frame.group_by("label").agg(pl.mean(report.GOAL)).sort(report.GOAL)
    assert [candidate.slowdown for candidate in ranked] == pytest.approx(means[report.GOAL].to_list())
    page = study_answer(result)
    assert " on ".join(reversed(ranked[0].label.split(", "))) in page.headline
    assert f"{mean_interval(ranked[0].metric(report.GOAL)).mean:.3g}" in page.because[0]
    costs = list(page.sections.values())[1]
    assert "+44,000 $ (+11 %)" in costs[1]
    tops = [
        next(candidate for candidate in ranked if candidate.machine == name)
        for name in ("whole-datacenter", "whole-datacenter-fixed")
    ]
    more = np.mean(tops[0].watts) - np.mean(tops[1].watts)
    assert f"power: {more:+,.0f}" in costs[2] or f"power: {more:+.3g}" in costs[2]
    assert [figure.name for figure in page.figures][:2] == ["stranded", "slowdown_power"]
    tables = {table.title: table for table in page.tables}
    assert len(tables["Machines and policies"].rows) == 4
    assert len(tables["Power and price by table"].rows) == 2 * 4
    assert "relative to the runtime with local memory" in tables["All results"].columns[1]
