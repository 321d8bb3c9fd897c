"""Significance of ratios, and selection of candidates for validation."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.optimize.front import front
from poolwise.search.answer import JudgedOrder, _choose
from poolwise.search.significance import Ratio, best, ratios

values = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12)


@given(values, st.data())
def test_best_rows_are_allowed_and_begin_with_the_front(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    array = np.array(rows, dtype=np.float64)
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    count = data.draw(st.integers(1, 12))
    best_rows = best(array, allowed, count)
    able = np.flatnonzero(allowed) if allowed.any() else np.arange(len(rows))
    assert len(set(best_rows)) == len(best_rows) == min(count, len(able)) and set(best_rows) <= set(able.tolist())
    first = able[front(array[able])]
    assert set(best_rows[: len(first)]) <= set(first.tolist())
    assert array[best_rows[0], 0] == array[able, 0].min()


def test_interval_that_includes_one_is_not_significant() -> None:
    """Values from a t table, for 0.9 and 0.8 alternately: t at 0.975 with three degrees of freedom is 3.1824."""
    logs = np.log([0.9, 0.8, 0.9, 0.8])
    half = 3.182446 * logs.std(ddof=1) / 2
    ratio = Ratio.of(logs)
    assert ratio.mean == pytest.approx(math.sqrt(0.72)) and ratio.low == pytest.approx(math.exp(logs.mean() - half), rel=1e-6)
    assert ratio.word == "less" and Ratio.of(-logs).word == "more"
    assert Ratio.of(np.log([0.9, 1.05])).word == "not shown to differ"
    assert Ratio.of(np.log([0.5])).word == "not shown to differ", "one workload is not significant"
    assert "no interval" in str(Ratio.of(np.log([0.5])))


@pytest.mark.parametrize(("noise", "chosen"), [(0.3, "fair"), (0.0, "fast")])
def test_fairest_of_the_orders_that_are_not_distinguishable_is_chosen(noise: float, chosen: str) -> None:
    """ "fair" has a slightly higher slowdown: without noise the difference is significant."""
    fast = np.array([[0.1, 0.5, 0.0, 0.0], [0.2, 0.5, 0.0, 0.0], [0.3, 0.5, 0.0, 0.0]])
    fair = fast + np.array([[0.01 + noise, -1.0, 0.0, 0.0], [0.01 - noise, -1.0, 0.0, 0.0], [0.01001, -1.0, 0.0, 0.0]])
    logs = {"fast": fast, "fair": fair}
    judged = [
        JudgedOrder(SimpleNamespace(name=name), "found", True, True, {"validation": ratios(rows, np.zeros_like(rows))})
        for name, rows in logs.items()
    ]  # type: ignore[arg-type]
    evaluator = SimpleNamespace(logs=lambda candidates, split: np.stack([logs[candidate.name] for candidate in candidates]))
    search = SimpleNamespace(objectives=SimpleNamespace(minimize=["bounded_slowdown"]))
    chosen_row = _choose(search, evaluator, judged)  # type: ignore[arg-type]
    assert chosen_row is not None and chosen_row.candidate.name == chosen
    assert _choose(search, evaluator, []) is None  # type: ignore[arg-type]
