"""Memory savings for a million cells do not change results."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.hashing import pretty, pretty_parts
from poolwise.studies import distributions as tables
from poolwise.studies import load, run
from poolwise.studies.cells import with_different_workloads
from poolwise.studies.metric_rows import MetricRows
from poolwise.studies.notes import seed_text
from tests.helpers.small_study import write

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), st.tuples(st.booleans(), JSON), max_size=4))
def test_json_in_parts_equals_json_in_one_piece(content):
    whole = {name: value for name, (_, value) in content.items()}
    lazy = {name: iter(value) if apart and isinstance(value, list) else value for name, (apart, value) in content.items()}
    assert b"".join(pretty_parts(lazy)) == pretty(whole, sort=False)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.floats(allow_nan=False)), max_size=5))
def test_metric_row_equals_its_dictionary(values):
    rows = MetricRows()
    made = [rows.row(metrics) for metrics in values]
    assert [dict(row) for row in made] == values and made == values
    assert [*rows.layouts] == [*dict.fromkeys(tuple(metrics) for metrics in values)]


def test_undefined_metrics_are_equal():
    rows = MetricRows()
    assert rows.row({"a": math.nan, "b": 1.0}) == rows.row({"a": -math.nan, "b": 1.0}) == {"b": 1.0, "a": math.nan}
    assert rows.row({"a": math.nan}) != rows.row({"a": 0.0}) and rows.row({"a": 1.0}) != rows.row({"b": 1.0})


def test_missing_metric_raises_key_error():
    with pytest.raises(KeyError):
        MetricRows().row({"a": math.nan})["b"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load(write(tmp_path_factory.mktemp("study")) / "study.toml", {"seeds.count": 5})


def test_cells_that_differ_by_seed_share_other_objects(study):
    for runs in (study.cells, study.baselines):
        variants = {str(cell.parameters): cell for cell in runs}
        for cell in runs:
            first = variants[str(cell.parameters)]
            for name in ("parameters", "machine", "machine_content", "workload", "scheduler", "performance", "costs"):
                assert getattr(cell, name) is getattr(first, name), name


def test_baselines_of_the_cells_are_distinct(study):
    expected = dict.fromkeys(cell.baseline().key for cell in study.cells)
    assert [cell.key for cell in study.baselines] == [*expected] and len(expected) == len(study.cells) // 2
    assert {cell.seed for cell in study.baselines} == set(range(5))


def test_tables_in_parts_equal_tables_in_one_piece(study, tmp_path, monkeypatch):
    result = run(study, tmp_path, jobs=1)
    for table in (tables.distributions, tables.memory_over_time):
        monkeypatch.setattr(tables, "AT_ONCE", 1000)
        (whole,) = table(result)
        monkeypatch.setattr(tables, "AT_ONCE", 3)
        parts = [*table(result)]
        assert len(parts) == 7 and pl.concat(parts).equals(whole)
        assert b"".join(tables.as_csv(parts)) == whole.write_csv().encode()


@pytest.mark.parametrize(
    ("seeds", "text"),
    [([3, 1, 1], "1, 3"), (range(10), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"), (range(5, 1_000_005), "5 to 1000004")],
)
def test_many_consecutive_seeds_are_formatted_as_a_range(seeds, text):
    assert seed_text(seeds) == text


def test_seeds_with_a_gap_are_all_listed():
    assert seed_text([*range(11), 12]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12"


def test_only_cells_with_different_workloads_are_read_for_validation():
    pools, halves = load("cerit-pools"), load("cerit-pools", {"vary.workload.first": [0, 9000], "workload.jobs": 8000})
    assert [with_different_workloads(pools.cells), len(pools.cells)] == [[pools.cells[0]], 30]
    assert [cell.workload.first for cell in with_different_workloads(halves.cells)] == [0, 9000]
