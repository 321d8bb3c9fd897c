"""Every condition that chooses a sentence matters: with it changed, a sentence is false of some table, and a test dies."""

import types
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from poolwise.report import sentences
from tests.report import test_words

SOURCE = Path(sentences.__file__).read_text(encoding="utf-8")
MUTANTS = [
    ('"too much" if found.least[at] > found.target', '"too much" if found.least[at] < found.target'),
    ("and here < (1 - SAME) * before:", "and True:"),
    ("and here < (1 - SAME) * before:", "and here > before:"),
    ("    if turned_away > here:", "    if turned_away >= here:"),
    ("    if turned_away > here:", "    if False:"),
    ("median < 1 + SAME", "median < 3"),
    ("found.slowdown > found.value", "found.slowdown < found.value"),
    ('"" if rival.certain or rival.interval is None else', '"" if not rival.certain else'),
    ("    if ratio >= 3:", "    if ratio >= 2:"),
    ('more" if ratio > 1 else', 'more" if ratio < 1 else'),
    ("abs(ratio - 1) < SAME", "abs(ratio - 1) < 40 * SAME"),
    ("    if low > 0:", "    if low >= 0:"),
    ("    if high < 0:", "    if high <= 0:"),
    ("low == high == mean == 0", "low == high"),
    ("    if not rival.certain:", "    if rival.certain:"),
    ("    if equals:\n", "    if not equals:\n"),
    ("here > (1 + SAME) * before:", "here < before:"),
    ("here > (1 + SAME) * before:", "here > 2 * before:"),
    ("    if found.at == last:", "    if found.at == last - 1:"),
    ("math.isclose(mine, theirs, rel_tol=SAME)", "math.isclose(mine, theirs, rel_tol=0.5)"),
    ("if order[0] == found.series or", "if order[0] != found.series or"),
    ("        elif math.isfinite(mine):", "        else:"),
    ("    if degraded > 0:", "    if degraded >= 0:"),
    ("if seeds > 1 else", "if seeds >= 1 else"),
    ("    if at < 0:\n        if len(sweep.x) > 1:", "    if at < 0:\n        if len(sweep.x) > 0:"),
    ("    if at < 0:\n", "    if at <= 0:\n"),
    ("    if not found.equals:", "    if found.equals:"),
    ("    metric = max(spread", "    metric = min(spread"),
    ("found.at)) > SAME\n", "found.at)) > -2\n"),
    ("if median else", "if not median else"),
    ("{found.at - 1, len(found.sizes) - 1} - {-1}", "{found.at, len(found.sizes) - 1} - {-1}"),
    ('found.equals[: NAMED - 1])]\n    return f"Run', 'found.equals[:NAMED])]\n    return f"Run'),
    ("len(found.equals) + 1 - len(names)", "len(found.equals) - len(names)"),
    ('"" if other.certain else "; the two sizes', '"" if not other.certain else "; the two sizes'),
    ("    if last == 0:", "    if last == 1:"),
    ("for at in range(1, len(sweep.x)):", "for at in range(2, len(sweep.x)):"),
    ("    if rival is None:", "    if rival is not None:"),
    ("    if rival.interval is None:", "    if rival.interval is not None:"),
    ("METRICS[metric].better)\n        if not order", '"lower")\n        if not order'),
    ("    at = found.at - 1\n", "    at = found.at - 2\n"),
]  # fmt: skip
TESTS = [
    test_words.test_every_reason_is_true,
    test_words.test_the_headline_names_all_that_cannot_be_told_apart,
    test_words.test_how_sure_says_every_interval,
    test_words.test_what_the_choice_costs_is_true,
]
TABLES = 220


@cache
def tables() -> list:
    """Tables, their answers known beforehand: (drawn, answer)."""
    rng = np.random.default_rng(5)
    found = []
    for seed in range(TABLES):
        away = tuple(rng.choice([0, 0, 0, 1, 3], 4).tolist())
        sizes, orders = (int(number) for number in rng.integers(1, 5, 2))
        drawn = test_words.table(seed, sizes, orders, away, bool(rng.random() < 0.4), bool(rng.random() < 0.4))
        found.append((drawn, test_words.choose(drawn[0], lambda series, at, fared=drawn[1]: fared[series, at])))
    return found


def dies(check: Callable[[], None]) -> bool:
    try:
        check()
    except (AssertionError, TypeError, IndexError, ValueError, AttributeError, ZeroDivisionError, StopIteration):
        return True
    return False


def killed(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a test dies on the words that are in place."""
    rng = np.random.default_rng(6)
    sure = test_words.test_how_sure_the_order_is_follows_from_the_intervals.hypothesis.inner_test
    for _ in range(300):
        low = rng.integers(-3, 4, int(rng.integers(0, 4)))
        spans = [(float(a), float(a + b)) for a, b in zip(low, rng.integers(0, 7, len(low)), strict=True) if 2 * a + b >= 0]
        if dies(lambda spans=spans: sure(spans)):
            return True
    if dies(lambda: sure([None, None])):
        return True
    if dies(test_words.test_at_most_three_orders_are_named_and_what_separates_them_most):
        return True
    size = test_words.test_another_size_is_better_or_worse_where_the_interval_excludes_zero.hypothesis.inner_test
    if any(dies(lambda a=a, b=b: size((float(a), float(a + b)))) for a in range(-3, 4) for b in range(7)):
        return True
    for drawn, answer in tables():
        monkeypatch.setattr(test_words, "choose", lambda sweep, jobs, answer=answer: answer)
        for test in TESTS:
            if dies(lambda test=test, drawn=drawn: test.hypothesis.inner_test(drawn)):
                return True
    return False


@pytest.mark.long
@pytest.mark.parametrize(("old", "new"), [("", ""), *MUTANTS])
def test_a_changed_condition_is_noticed(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SOURCE.count(old) >= 1, "the sentence is still there"
    mutant = types.ModuleType("words")
    exec(compile(SOURCE.replace(old, new, 1) if old else SOURCE, "sentences.py", "exec"), mutant.__dict__)
    monkeypatch.setattr(test_words, "words", mutant)
    tables()
    assert killed(monkeypatch) == bool(old)
