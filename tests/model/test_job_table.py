"""Job tables: rows of jobs that are gone are given to later jobs, and derived columns follow."""

import random

import numpy as np
import pytest

from poolwise.model import JobTable, job_table


def jobs(*ids: int) -> JobTable:
    """Return a table of jobs whose columns follow from their ids."""
    id = np.array(ids, dtype=np.int64)
    attributes = {"name_length": id % 7, "text": np.array([f"t{k % 5}" * (1 + k % 3) for k in ids], dtype=np.str_)}
    return JobTable(id, id * 10, id * 100, id % 3 + 1, {"nodes": id % 4}, attributes, draw=id, name=[f"job-{k}" for k in ids])


def double(table: JobTable, rows: slice) -> np.ndarray:
    return table.id[rows] * 2


def sizes(table: JobTable, rows: slice) -> list[np.ndarray]:
    return [table.nodes[rows], table.attributes["text"][rows]]


@pytest.mark.parametrize("seed", range(20))
def test_columns_follow_a_random_life_of_jobs(seed: int) -> None:
    """Each job keeps its row while it lives, and all columns and kinds are those of the jobs in the rows."""
    draw, table, row_of, next_id, peak = random.Random(seed), jobs(), dict[int, int](), 1, 0
    for _ in range(60):
        new = range(next_id, next_id + draw.randrange(6))
        row_of.update(zip(new, table.append(jobs(*new)), strict=True))
        next_id += len(new)
        peak = max(peak, len(row_of))
        for id in draw.sample(sorted(row_of), draw.randrange(len(row_of) + 1) // 2):
            del row_of[id]
        for id, row in row_of.items():
            same = jobs(id)
            assert table.id[row] == id and table.name(row) == f"job-{id}" and table.order_key(row) == same.order_key(0)
            assert table.derived("double", double)[row] == 2 * id
            assert table.log10_requested[row] == same.log10_requested[0] and table.nodes[row] == same.nodes[0]
            kinds = table.kinds("sizes", sizes)
            assert kinds.value[kinds.of[row]] == (same.nodes[0], same.attributes["text"][0])
        if draw.random() < 0.5:
            before, table = table, table.recycled(row_of.values())
            assert before.id[list(row_of.values())].tolist() == list(row_of)
    assert len(set(row_of.values())) == len(row_of)
    assert len(table.recycled(row_of.values())) <= len(table) < next_id / 2


def test_crowded_tables_have_few_live_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_table, "SPARE_ROWS", 4)
    table = jobs(*range(10))
    assert table.crowded(5) and not table.crowded(6)
    recycled = table.recycled([0, 2, 9])
    assert not recycled.crowded(3)
    assert recycled.append(jobs(*range(20, 28))) == [1, 3, 4, 5, 6, 7, 8, 10]
    assert len(table.recycled([])) == 0


def test_replaced_columns_keep_rows_and_names() -> None:
    """Rows whose jobs are gone keep their names until later jobs get them."""
    table = jobs(1, 2, 3, 4).recycled([0, 2, 3])
    other = JobTable(
        *(np.array([5, 6]),) * 4, {"cores": np.array([1, 2])}, {"kind": np.array(["a", "b"], dtype=object)}, name=["e", "f"]
    )
    replaced = table.replaced([2, 0], other)
    assert [replaced.name(row) for row in range(4)] == ["f", "job-2", "e", "job-4"]
    assert replaced.requests["cores"].tolist() == [2, 0, 1, 0] and replaced.attributes["kind"].tolist() == ["b", "", "a", ""]
    assert replaced.submit.tolist() == [6, 20, 5, 40]
    assert replaced.append(other.taken(np.array([0]))) == [1]
    assert len(table.replaced([], other.taken(np.zeros(0, dtype=np.int64)))) == 4
