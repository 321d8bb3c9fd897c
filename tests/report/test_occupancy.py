"""Occupancy over time, compared with a slow sum over jobs."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolwise.report.run_parts import jobs_waiting, mean_over_parts, nodes_in_use
from poolwise.report.study import study_answer
from poolwise.studies import StudyResult


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(1, 5)), min_size=1, max_size=20))
def test_means_match_a_sum_over_jobs(drawn: list[tuple[int, int, int]]) -> None:
    begin = np.array([b for b, _, _ in drawn])
    end = begin + np.array([d for _, d, _ in drawn])
    weight = np.array([float(w) for _, _, w in drawn])
    edges = np.array([3.0, 10.0, 11.0, 40.0])
    slow = [
        sum(w * max(0.0, min(e, high) - max(b, low)) for b, e, w in zip(begin, end, weight, strict=True)) / (high - low)
        for low, high in pairwise(edges)
    ]
    assert np.allclose(mean_over_parts(begin, end, weight, edges), slow)


def test_reported_occupancy_is_within_the_machine(result: StudyResult) -> None:
    figures = {figure.name: figure for figure in study_answer(result).figures}
    (nodes,) = figures["nodes_over_time"].series.values()
    assert 0 <= min(nodes) < max(nodes) <= 100 + 1e-9
    outcomes = result.outcomes(result.cells[0])
    whole = np.array([float(outcomes.first_submit), float(outcomes.end.max())])
    done = outcomes.finished
    held = (outcomes.nodes_held * (outcomes.end - outcomes.start))[done].sum()
    waited = (outcomes.start - outcomes.submit)[done].sum()
    assert np.isclose(nodes_in_use(outcomes, whole)[0] * np.ptp(whole), held)
    assert np.isclose(jobs_waiting(outcomes, whole)[0] * np.ptp(whole), waited)
