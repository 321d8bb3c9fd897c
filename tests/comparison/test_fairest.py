"""The rule for alternatives that are not distinguishable, compared with its definition."""

import math

from hypothesis import given
from hypothesis import strategies as st

from poolwise.comparison.fairest import fairest
from poolwise.metrics import mean_interval

ALTERNATIVES = st.lists(
    st.tuples(st.lists(st.integers(0, 9), min_size=3, max_size=3), st.integers(0, 5)), min_size=1, max_size=6
)


@given(ALTERNATIVES, st.booleans())
def test_choice_is_unbeaten_and_adds_the_least_wait(drawn: list[tuple[list[int], int]], known: bool) -> None:
    drawn.sort(key=lambda one: sum(one[0]))
    rows = range(len(drawn))

    def difference(one: int, other: int):
        return mean_interval([a - b for a, b in zip(drawn[one][0], drawn[other][0], strict=True)])

    added = [float(wait) if known else math.nan for _, wait in drawn]
    choice = fairest(list(rows), lambda k: added[k], difference)
    unbeaten = [k for k in rows if not any(difference(other, k).high < 0 for other in rows)]
    assert choice in unbeaten and not difference(choice, 0).low > 0
    if known:
        tied = [k for k in unbeaten if difference(k, 0).low <= 0]
        assert added[choice] == min(added[k] for k in tied)
    else:
        assert choice == 0


def test_lowest_is_chosen_with_one_value_each() -> None:
    goal, added = [1.0, 1.1], [9.0, 0.0]
    assert fairest([0, 1], lambda k: added[k], lambda one, other: mean_interval([goal[one] - goal[other]])) == 0
