"""Reproduction of the NVMe composition paper: claims, plans, figures and core packing."""

import csv
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from poolwise.runner import Local
from poolwise_reproductions import catalog
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.nvme_composition import PARTS, QUICK, NvmeComposition, cases
from poolwise_reproductions.nvme_composition.cells import DEFAULT, NvmeCase, NvmeLoad, NvmeRun, measure_cases
from poolwise_reproductions.nvme_composition.claims import NvmeResults, switches
from poolwise_reproductions.nvme_composition.figures import origins, rates, tables
from poolwise_reproductions.nvme_composition.packing import PACKINGS, PackingCase, describe_packing, packing_table
from poolwise_reproductions.nvme_composition.packing import cases as calibrated_packings
from poolwise_reproductions.nvme_composition.packing import node_of as packed_node
from poolwise_reproductions.nvme_composition.plan import COLUMNS, FASTER, MODES, SOURCES, NvmePlan, base, seeded
from poolwise_reproductions.published import SWITCH, read_claims
from tests.helpers.data import PUBLISHED
from tests.helpers.kept_trials import written

CALIBRATION = {"gap_s": 300.0, "begin": 0, "end": 2 * 10**14, "opened": True, "reached": True}


def packing_cases(seeds: int) -> list[PackingCase]:
    return calibrated_packings(seeds, lambda loads: dict.fromkeys(loads, CALIBRATION))


def claims():
    return read_claims(catalog.find("claims", "nvme-composition.csv"))


def measured_rows(results):
    return (row for part in PARTS for rows in part.rows for row in rows(results))


def test_every_published_value_is_one_claim():
    stated = {claim.key: claim.published for claim in claims()}
    tables = {"high_bandwidth": "Table III", "high_capacity": "Table IV", "high_compute": "Table V"}
    with (PUBLISHED / "nvme_tables.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    for row in rows:
        where = f"{row['scenario']}, load {row['target_load']}, {row['infrastructure']}, {row['policy']}"
        for name in COLUMNS:
            assert stated[tables[row["scenario"]], where, name] == float(row[name])


def test_measurements_match_the_claims():
    rows = {mode: {key for key, _ in measured_rows(NvmeResults({}, NvmePlan(1), mode))} for mode in SOURCES}
    assert rows["default"] == {claim.key for claim in claims()}
    extensions = {claim.key for claim in claims() if claim.kind == "ours"}
    assert rows["parity"] == rows["inferred"] == rows["default"] - extensions


def test_full_plan_covers_every_row_and_quick_plan_only_some():
    """The cases that the rows look up are among the planned ones; nothing runs."""
    requested = set()

    class Recorder(dict):
        def __contains__(self, case):
            requested.add(case)
            return False

    for mode in MODES:
        list(measured_rows(NvmeResults(Recorder(), NvmePlan(1), mode)))
    assert requested <= set(cases(NvmePlan(1)))
    assert not requested <= set(cases(QUICK))


def test_every_switch_that_a_claim_names_measures_it():
    """The value of each case is its arrival gap, which identifies the case that was looked up."""

    class FakeResults(dict):
        def __contains__(self, case):
            return True

        def __getitem__(self, case):
            return dict.fromkeys((*COLUMNS, "true_sharing_ratio"), case.gap_s or case.load.target)

    found = switches(NvmeResults(FakeResults(), NvmePlan(2)))
    named = [claim for claim in claims() if claim.shown_by.startswith(SWITCH)]
    assert {claim.shown_by.removeprefix(SWITCH) for claim in named} == set(found)
    assert all(claim.key in found[claim.shown_by.removeprefix(SWITCH)] for claim in named)
    faster = found["one arrival in 50 s"]
    assert {value.value for value in faster.values()} == {50.0} and len(faster) == len(FASTER) * len(COLUMNS)


def test_arrival_gap_scales_the_measurement_window():
    load = NvmeLoad("high_compute", 0.5, 0)
    cases = (NvmeCase(load, "first_fit", gap_s=gap_s) for gap_s in (0.0, 600.0))
    plain, slower = (NvmeRun.of(case, CALIBRATION).measure() for case in cases)
    assert plain["measured"] == slower["measured"] > 0
    assert slower["cpu_load"] == pytest.approx(plain["cpu_load"] / 2, rel=0.1)


def test_tables_list_our_values_under_each_published_row():
    case = base("high_capacity", 0.6, "first_fit", "physically_attached", "parity")
    runs = {seeded(case, seed): dict.fromkeys(COLUMNS, 1.0 + seed) for seed in range(2)}
    third, fourth, _ = tables(NvmeResults(runs, NvmePlan(2)))
    assert third.title == "Table III: high bandwidth"
    assert [row[1] for row in third.rows] == ["published"] * 20
    where = [k for k, row in enumerate(fourth.rows) if row[1] == "parity"]
    assert len(where) == 1
    above, measured = fourth.rows[where[0] - 1], fourth.rows[where[0]]
    assert measured[:2] == ["", "parity"]
    assert above[:2] == ["0.6 attached, first fit", "published"]
    with (PUBLISHED / "nvme_tables.csv").open(newline="") as file:
        (row,) = [
            row for row in csv.DictReader(file)
            if (row["scenario"], row["target_load"], row["infrastructure"], row["policy"])
            == ("high_capacity", "0.6", "physically_attached", "first_fit")
        ]  # fmt: skip
    assert [float(cell) for cell in above[2:]] == [float(row[name]) for name in COLUMNS]
    assert measured[2] == "1.50 ±6.35"  # t = 12.706 with one degree of freedom, times 0.5


@pytest.mark.long
def test_results_are_cached_and_reused(tmp_path):
    case = NvmeCase(NvmeLoad("high_compute", 0.5, 0), "first_fit")
    first = measure_cases([case], Measurer(tmp_path, Local(1)))
    records = written(tmp_path)
    assert len(records) == 2  # the calibration and the case
    again = measure_cases([case], Measurer(tmp_path, Local(1)))
    assert first == again
    assert written(tmp_path) == records
    found = first[case]
    assert found["reached"]
    assert found["rejected"] == 0
    assert found["composition_size"] == 1.0
    assert NvmeComposition().seeds == 10
    assert case.load.physics == DEFAULT


def test_every_figure_is_drawn_with_the_published_values():
    class FakeResults(dict):
        def __contains__(self, case):
            return True

        def __getitem__(self, case):
            share = {"maximized": 1, "minimized": 1, "node_nvme": [1, 2, 3, 4, 5], "node_compute": [5, 4, 3, 2, 1]}
            names = (*COLUMNS, "true_composition_size", "true_sharing_ratio")
            return dict.fromkeys(names, case.gap_s or case.load.target) | share

    results = NvmeResults(FakeResults(), NvmePlan(2))
    under = [replace(results, mode=mode) for mode in MODES]
    drawn = {one.name: one for each in under for part in PARTS for draw in part.draw for one in draw(each)}
    drawn |= {one.name: one for one in (origins(results), rates(results))}
    assert {f"figure4-{name}-{mode}" for name in ("S1", "S2", "S3") for mode in MODES} | {"origins", "rates"} <= set(drawn)
    assert drawn["figure4-S1-default"].published["first fit, disaggregated"][-1] == 96.71
    panel = drawn["rates"].panels[0]
    assert panel.series["first fit"] == list(panel.x) and set(panel.series["aware, published"]) == {92.42}


def test_packing_chooses_the_node_of_late_workloads():
    free = {4: 20, 6: 5, 9: 10}  # of 25 cores
    view = SimpleNamespace(
        layout=SimpleNamespace(nodes=np.array(list(free))), free_cores=free.get, beta=lambda node: 1 - free[node] / 25
    )

    def node(packing, late, cores=6):
        return packed_node(packing, choices, SimpleNamespace(late=late, cores=cores), view, 99)

    choices = Counter()
    late = {name: node(packing, True) for name, packing in PACKINGS.items()}
    in_time = {name: node(packing, False) for name, packing in PACKINGS.items()}
    assert list(late.values()) == [99, 9, 4, 9, 4]
    assert list(in_time.values()) == [99, 99, 99, 9, 4]
    assert choices == {True: len(PACKINGS)}  # workloads in time are not counted
    assert node(PACKINGS["all on the emptiest node"], True, cores=21) == 99 and choices == {True: len(PACKINGS)}
    assert node(PACKINGS["all on the emptiest node"], True, cores=11) == 4 and choices[False] == 1


def test_core_packing_is_refuted_only_by_equal_misses():
    def found(late_misses):
        usual, misses = next(iter(PACKINGS)), {}
        for case in packing_cases(2):
            late = case.packing != usual and PACKINGS[case.packing].late_alone
            misses[case] = {"missed_deadlines_pct": late_misses if late else 50.0, "one_node": 3, "several_nodes": 1}
        return misses

    (refuted,), (part,) = describe_packing(found(50.25)), describe_packing(found(53.0))
    assert "of 24 times" in refuted and "more than one 6 times" in refuted and "at most 0.25 points" in refuted
    assert "is refuted as a cause" in refuted and "is a part as a cause" not in part and "is a part of the cause" in part
    (table,) = packing_table(found(53.0))
    assert [row[1] for row in table.rows] == ["50.00", "53.00", "53.00", "50.00", "50.00"]
    assert describe_packing({}) == packing_table({}) == []


def test_packings_vary_runs_of_the_tables():
    assert {case.run.case for case in packing_cases(3) if not case.run.case.gap_s} <= set(cases(NvmePlan(3)))


@pytest.mark.long
def test_packing_without_a_change_equals_the_run_of_the_table(tmp_path):
    measure = Measurer(tmp_path, Local(1))
    case = calibrated_packings(1, measure)[0]
    usual = measure([case.run])[case.run]
    assert measure([case])[case]["missed_deadlines_pct"] == usual["missed_deadlines_pct"]
