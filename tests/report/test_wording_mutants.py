"""Mutation tests: if a condition that selects a sentence is changed, a sentence is wrong for some table and a test fails."""

import types
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from poolwise.report import sentences
from tests.report import test_sentences

SOURCE = Path(sentences.__file__).read_text(encoding="utf-8")
MUTANTS = [
    ("recommendation.least[at] > recommendation.target else", "recommendation.least[at] < recommendation.target else"),
    ("and here < (1 - SAME) * before:", "and True:"),
    ("and here < (1 - SAME) * before:", "and here > before:"),
    ("    if rejected > here:", "    if rejected >= here:"),
    ("    if rejected > here:", "    if False:"),
    ("median < 1 + SAME", "median < 3"),
    ("recommendation.slowdown > recommendation.value", "recommendation.slowdown < recommendation.value"),
    ('"" if rival.certain or rival.interval is None else', '"" if not rival.certain else'),
    ("    if ratio >= 3:", "    if ratio >= 2:"),
    ('more" if ratio > 1 else', 'more" if ratio < 1 else'),
    ("abs(ratio - 1) < SAME", "abs(ratio - 1) < 40 * SAME"),
    ("    if low > 0:", "    if low >= 0:"),
    ("    if high < 0:", "    if high <= 0:"),
    ("low == high == mean == 0", "low == high"),
    ('if rival.certain else ""\n', 'if not rival.certain else ""\n'),
    ('"alike" if equals else', '"alike" if not equals else'),
    ("    if rival.ratio < 1:", "    if rival.ratio < 2:"),
    ("added[0] < min(added[1:])", "added[0] > min(added[1:])"),
    ("here > (1 + SAME) * before:", "here < before:"),
    ("here > (1 + SAME) * before:", "here > 2 * before:"),
    ("    if recommendation.at == last:", "    if recommendation.at == last - 1:"),
    ("math.isclose(mine, best, rel_tol=SAME)", "math.isclose(mine, best, rel_tol=0.5)"),
    ("if order[0] == recommendation.series or", "if order[0] != recommendation.series or"),
    ("        elif math.isfinite(mine):", "        else:"),
    ("    if degraded > 0:", "    if degraded >= 0:"),
    ("if seeds > 1 else", "if seeds >= 1 else"),
    ("    if at < 0:\n        if len(sweep.x) > 1:", "    if at < 0:\n        if len(sweep.x) > 0:"),
    ("    if at < 0:\n", "    if at <= 0:\n"),
    ("    if not recommendation.equals:", "    if recommendation.equals:"),
    ("    metric = max(spread", "    metric = min(spread"),
    ("recommendation.at)) > SAME\n", "recommendation.at)) > -2\n"),
    ("if median else", "if not median else"),
    ("{recommendation.at - 1, len(", "{recommendation.at, len("),
    ("recommendation.equals[: NAMED - 1])]", "recommendation.equals[:NAMED])]"),
    ("len(recommendation.equals) + 1 - len(names)", "len(recommendation.equals) - len(names)"),
    ('"" if other.certain else "; the two sizes', '"" if not other.certain else "; the two sizes'),
    ("    if last == 0:", "    if last == 1:"),
    ("for at in range(1, len(sweep.x)):", "for at in range(2, len(sweep.x)):"),
    ("    if rival is None:", "    if rival is not None:"),
    ("    if rival.interval is None:", "    if rival.interval is not None:"),
    ("METRICS[metric].better)\n        if not order", '"lower")\n        if not order'),
    ("    at = recommendation.at - 1\n", "    at = recommendation.at - 2\n"),
]  # fmt: skip
TESTS = [
    test_sentences.test_every_reason_holds,
    test_sentences.test_headline_names_the_choice_and_the_next_sentence_its_equals,
    test_sentences.test_certainty_sentences_state_every_interval,
    test_sentences.test_tradeoffs_hold,
]
TABLES = 220


@cache
def tables() -> list:
    """Return random tables with their answers."""
    rng = np.random.default_rng(5)
    recommendations = []
    for seed in range(TABLES):
        rejected = tuple(rng.choice([0, 0, 0, 1, 3], 4).tolist())
        sizes, orders = (int(number) for number in rng.integers(1, 5, 2))
        drawn = test_sentences.table(seed, sizes, orders, rejected, bool(rng.random() < 0.4), bool(rng.random() < 0.4))
        recommendations.append((drawn, test_sentences.choose(drawn[0], lambda series, at, fared=drawn[1]: fared[series, at])))
    return recommendations


def fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except (AssertionError, TypeError, IndexError, ValueError, AttributeError, ZeroDivisionError, StopIteration):
        return True
    return False


def detected(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether any test fails with the sentences in place."""
    rng = np.random.default_rng(6)
    certainty = test_sentences.test_certainty_of_the_order_follows_from_the_intervals.hypothesis.inner_test
    for _ in range(300):
        low = rng.integers(-3, 4, int(rng.integers(0, 4)))
        spans = [(float(a), float(a + b)) for a, b in zip(low, rng.integers(0, 7, len(low)), strict=True) if 2 * a + b >= 0]
        if fails(lambda spans=spans: certainty(spans)):
            return True
    if fails(lambda: certainty([None, None])):
        return True
    if fails(test_sentences.test_headline_names_at_most_three_orders_and_their_largest_difference):
        return True
    size = test_sentences.test_verdict_on_another_size_follows_from_its_interval.hypothesis.inner_test
    if any(fails(lambda a=a, b=b: size((float(a), float(a + b)))) for a in range(-3, 4) for b in range(7)):
        return True
    for drawn, answer in tables():
        monkeypatch.setattr(test_sentences, "choose", lambda sweep, jobs, answer=answer: answer)
        for test in TESTS:
            if fails(lambda test=test, drawn=drawn: test.hypothesis.inner_test(drawn)):
                return True
    return False


@pytest.mark.long
@pytest.mark.parametrize(("old", "new"), [("", ""), *MUTANTS])
def test_changed_condition_is_detected(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SOURCE.count(old) >= 1, "the condition exists"
    mutant = types.ModuleType("sentences")
    exec(compile(SOURCE.replace(old, new, 1) if old else SOURCE, "sentences.py", "exec"), mutant.__dict__)
    monkeypatch.setattr(test_sentences, "sentences", mutant)
    tables()
    assert detected(monkeypatch) == bool(old)
