"""Sentences and tables about costs, compared with an independent calculation."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from poolwise.presentation.cost import Cost, CostLine, cost_sentences, cost_table, tornado

PRICES = st.lists(st.integers(0, 100).map(float), min_size=3, max_size=3).map(lambda found: tuple(sorted(found)))
LINES = st.builds(
    lambda recommended, today, price: (float(recommended), float(today), price), st.integers(0, 9), st.integers(0, 9), PRICES
)


def cost(lines, today):
    return Cost(tuple(CostLine(f"part{k}", "", *line) for k, line in enumerate(lines)), today)


def spent(lines, which, prices):
    return sum(line[which] * price for line, price in zip(lines, prices, strict=True))


@given(st.lists(LINES, min_size=1, max_size=4), st.booleans())
def test_every_sentence_about_costs_holds(lines, today):
    costs = cost(lines, today)
    likely = [line[2][1] for line in lines]

    def money(prices):
        return spent(lines, 1, prices) - spent(lines, 0, prices) if today else spent(lines, 0, prices)

    ends = [money(np.array(prices)) for prices in itertools.product(*(line[2] for line in lines))]
    least, middle, most = costs.saved if today else costs.total
    assert (least, middle, most) == pytest.approx((min(ends), money(likely), max(ends)), abs=1e-6)
    swings = {}
    for k, line in enumerate(lines):
        at = [money([*likely[:k], price, *likely[k + 1 :]]) for price in (line[2][0], line[2][2])]
        assert costs.range_over(costs.lines[k]) == pytest.approx(at, abs=1e-6)
        swings[f"part{k}"] = at
    lines_about_costs = cost_sentences(costs)
    drawn = tornado(costs)
    moving = {name for name, at in swings.items() if at[0] != at[1]}
    assert (drawn is None) == (not costs.sensitive_lines)
    if drawn is not None:
        assert set(drawn.y_axis.ticks.values()) == {line.name for line in costs.sensitive_lines} <= moving
        named = re.search(r"price of each (part\d)", lines_about_costs[1])[1]
        assert abs(np.subtract(*swings[named])) == pytest.approx(max(abs(np.subtract(*at)) for at in swings.values()), rel=1e-9)
    turns = [line for line in lines_about_costs if "is cheaper" in line]
    for line in turns:
        side, price, name = re.match(r"(Above|Below) ([\d.,]+) \$ for each (part\d),", line).groups()
        k = int(name[4:])
        even, slope = float(price.replace(",", "")), lines[k][1] - lines[k][0]
        low, _, high = lines[k][2]
        assert low - 1e-2 * high <= even <= high * 1.01 and (side == "Above") == (slope < 0)
        assert abs(money([*likely[:k], even, *likely[k + 1 :]])) <= abs(slope) * max(0.5, 0.006 * even)
    crossing = {name for name, at in swings.items() if min(at) < 0 < max(at)}
    assert {re.search(r"part\d", line)[0] for line in turns} == (crossing if today else set())


@given(LINES)
def test_cost_table_adds_up(line):
    assume(line[2][0] < line[2][2])
    table = cost_table(cost([line], True))
    assert table.rows[-1][3] == f"{line[0] * line[2][1]:,.0f} $" and table.rows[-1][5] == f"{line[1] * line[2][1]:,.0f} $"
    assert len(cost_table(cost([line], False)).columns) == 4


def test_recommendation_that_costs_more_than_today_is_not_called_a_saving():
    fixed, ranged = (100.0, 100.0, 100.0), (50.0, 100.0, 150.0)
    assert cost_sentences(cost([(5.0, 2.0, fixed)], True))[0] == "It costs 300 $ more than today."
    assert cost_sentences(cost([(5.0, 2.0, ranged)], True))[0] == "It costs 300 $ (150 to 450 $) more than today."
    mixed = cost_sentences(cost([(5.0, 2.0, ranged), (0.0, 2.0, fixed)], True))
    assert mixed[0] == "It costs 100 $ more than today (from 250 $ more to 50 $ less)."
    assert "matters most: from 250 $ more than today to 50 $ saved compared with today over its range" in mixed[1]
    assert "between 150 and 450 $ more than today over its range" in cost_sentences(cost([(5.0, 2.0, ranged)], True))[1]
    assert cost_sentences(cost([(2.0, 5.0, fixed)], True))[0] == "300 $ saved compared with today."
