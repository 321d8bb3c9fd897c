"""Waits by group of jobs: classes partition the jobs, and waits match the run."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolwise.metrics.slowdown import wait_s
from poolwise.quantities import format_time
from poolwise.report.run_parts import CLASSES, _classes, waits_by_group
from poolwise.studies import StudyResult


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_every_job_is_in_exactly_one_class(drawn: list[int]) -> None:
    values = np.array(drawn)
    classes = list(_classes(values))
    assert len(classes) <= CLASSES
    assert (sum(chosen.astype(int) for _, _, chosen in classes) == 1).all()
    for low, high, chosen in classes:
        assert (values[chosen].min(), values[chosen].max()) == (low, high)
        assert np.isin(values, values[chosen]).sum() == chosen.sum(), "equal values are in one class"


def test_waits_match_the_run(result: StudyResult) -> None:
    cell = result.cells[0]
    table = waits_by_group(result, cell)
    rows = {row[0]: row for row in table.rows}
    waits = wait_s(result.outcomes(cell))[result.population(cell)]
    assert rows["all jobs"][1:] == [f"{len(waits):,}", format_time(np.median(waits)), format_time(np.quantile(waits, 0.95))]
    by_memory = [int(cells[1]) for name, cells in rows.items() if name.endswith(" per node")]
    by_nodes = [int(cells[1]) for name, cells in rows.items() if name.endswith((" node", " nodes")) and " per node" not in name]
    assert sum(by_memory) == sum(by_nodes) == len(waits)
