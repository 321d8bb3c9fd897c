"""What keeps a million cells small, and is the same as if it did not."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.hashing import pretty, pretty_parts
from poolwise.studies import distributions as tables
from poolwise.studies import load, run
from poolwise.studies.metric_rows import MetricRows
from poolwise.studies.notes import seed_words
from tests.helpers.small_study import write

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), st.tuples(st.booleans(), JSON), max_size=4))
def test_an_object_in_parts_is_the_object_as_it_is_written_whole(content):
    whole = {name: value for name, (_, value) in content.items()}
    lazy = {name: iter(value) if apart and isinstance(value, list) else value for name, (apart, value) in content.items()}
    assert b"".join(pretty_parts(lazy)) == pretty(whole, sort=False)


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.floats(allow_nan=False)), max_size=5))
def test_a_row_of_metrics_is_the_dictionary_that_it_was_made_of(values):
    rows = MetricRows()
    made = [rows.row(one) for one in values]
    assert [dict(row) for row in made] == values and made == values
    assert [*rows.layouts] == [*dict.fromkeys(tuple(one) for one in values)]


def test_undefined_metrics_are_the_same():
    rows = MetricRows()
    assert rows.row({"a": math.nan, "b": 1.0}) == rows.row({"a": -math.nan, "b": 1.0}) == {"b": 1.0, "a": math.nan}
    assert rows.row({"a": math.nan}) != rows.row({"a": 0.0}) and rows.row({"a": 1.0}) != rows.row({"b": 1.0})


def test_a_metric_that_a_row_has_not_is_an_error():
    with pytest.raises(KeyError):
        MetricRows().row({"a": math.nan})["b"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load(write(tmp_path_factory.mktemp("study")) / "study.toml", {"seeds.count": 5})


def test_cells_that_differ_by_seed_share_everything_else(study):
    for runs in (study.cells, study.baselines):
        variants = {str(cell.parameters): cell for cell in runs}
        for cell in runs:
            first = variants[str(cell.parameters)]
            for name in ("parameters", "machine", "machine_content", "trace", "scheduler", "performance", "costs"):
                assert getattr(cell, name) is getattr(first, name), name


def test_the_baselines_are_those_of_the_cells_each_once(study):
    expected = dict.fromkeys(cell.baseline().key for cell in study.cells)
    assert [cell.key for cell in study.baselines] == [*expected] and len(expected) == len(study.cells) // 2
    assert {cell.seed for cell in study.baselines} == set(range(5))


def test_tables_in_parts_are_the_tables_as_they_are_written_whole(study, tmp_path, monkeypatch):
    result = run(study, tmp_path, jobs=1)
    for table in (tables.distributions, tables.memory_over_time):
        monkeypatch.setattr(tables, "AT_ONCE", 1000)
        (whole,) = table(result)
        monkeypatch.setattr(tables, "AT_ONCE", 3)
        parts = [*table(result)]
        assert len(parts) == 7 and pl.concat(parts).equals(whole)
        assert b"".join(tables.as_csv(parts)) == whole.write_csv().encode()


@pytest.mark.parametrize(
    ("seeds", "words"),
    [([3, 1, 1], "1, 3"), (range(10), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"), (range(5, 1_000_005), "5 to 1000004")],
)
def test_many_seeds_are_told_by_the_first_and_the_last(seeds, words):
    assert seed_words(seeds) == words


def test_seeds_with_a_gap_are_all_told():
    assert seed_words([*range(11), 12]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12"
