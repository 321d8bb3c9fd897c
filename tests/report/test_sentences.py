"""Every sentence of a recommendation holds for the random table from which it was computed."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise.files.size_text import SizeText
from poolwise.metrics import METRICS
from poolwise.metrics.intervals import Interval
from poolwise.presentation.format import format_number
from poolwise.quantities import format_time
from poolwise.report import sentences
from poolwise.report.recommendation import ENOUGH, GOAL, Alternative, Recommendation, choose
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult

JOBS = 60
NO_LONGER = "no longer than their runtime"
SIZES = (128, 256, 512, 1024)


def table(seed: int, sizes: int, orders: int, rejected_jobs: tuple[int, ...], near: bool, falling: bool) -> tuple[Sweep, dict]:
    """Return a sweep with random metrics, and the slowdowns of single jobs in each run."""
    rng = np.random.default_rng(seed)
    base = 1 + rng.exponential(3.0, JOBS)
    fared, cells = {}, {}
    for k in range(orders):
        for at in range(sizes):
            factor = 1 + 0.001 * rng.random() if near else 1 + 3 * rng.random()
            jobs = base * factor * (sizes - at if falling else 1) * (1 if near else rng.uniform(0.8, 1.2, JOBS))
            metrics = {name: float(rng.choice([0.0, np.nan, rng.exponential(900.0)], p=[0.1, 0.1, 0.8])) for name in METRICS}
            metrics[GOAL] = float(jobs.mean())
            rejected = {"too large": rejected_jobs[at]} if rejected_jobs[at] else {}
            cells[f"O{k}", at] = [CellResult({}, 0, f"{k}{at}", metrics, JOBS, {}, {}, rejected, 0, "test", np.nan, np.nan)]
            fared[f"O{k}", at] = jobs
    sizes_gib = SIZES[:sizes]
    sweep = Sweep(
        "machine.pool.memory.memory" if sizes > 1 else "", tuple(1024.0 * x for x in sizes_gib),
        tuple(f"{x} GiB" if sizes > 1 else "" for x in sizes_gib), tuple(f"O{k}" for k in range(orders)), cells,
        "GiB", SizeText("pool memory in each rack"),
    )  # fmt: skip
    return sweep, fared


TABLES = st.builds(
    table,
    st.integers(0, 10_000),
    st.integers(1, 4),
    st.integers(1, 4),
    st.tuples(*[st.sampled_from([0, 0, 0, 1, 3])] * 4),
    st.booleans(),
    st.booleans(),
)


class Truth:
    """Values of the table, computed without the tested code."""

    def __init__(self, sweep: Sweep, fared: dict, found: Recommendation) -> None:
        self.sweep, self.fared, self.found = sweep, fared, found
        self.least = [min(float(fared[s, at].mean()) for s in sweep.series) for at in range(len(sweep.x))]
        self.rejected = [max(sum(sweep.cells[s, at][0].rejected.values()) for s in sweep.series) for at in range(len(sweep.x))]
        self.target = (1 + ENOUGH) * min(v for v, n in zip(self.least, self.rejected, strict=True) if n == min(self.rejected))

    def metric(self, series: str, name: str) -> float:
        return self.sweep.cells[series, self.found.at][0].metrics[name]


def change(text: str, old: float, new: float) -> bool:
    """Check whether words such as "12 % more" hold for two values."""
    ratio = new / old
    if "the same" in text:
        return abs(ratio - 1) < sentences.SAME
    if match := re.search(r"([\d.,]+) times as much", text):
        return ratio >= 3 and float(match[1].replace(",", "")) == pytest.approx(ratio, rel=0.01)
    match = re.search(r"([\d.]+) % (more|less)", text)
    assert match, text
    sign = 1 if match[2] == "more" else -1
    return float(match[1]) / 100 == pytest.approx(sign * (ratio - 1), rel=0.06, abs=0.0006)


def smaller(t: Truth, m: re.Match[str]) -> bool:
    at = t.found.at
    too_much = t.least[at - 1] > t.target
    return (
        m[1] == t.sweep.labels[at - 1] and m[2] == format_number(t.least[at - 1]) and change(m[3], t.least[at], t.least[at - 1])
        and (m[4] == "is too much") == too_much and (too_much or t.rejected[at - 1] > t.rejected[at])
    )  # fmt: skip


def rises(t: Truth, m: re.Match[str]) -> bool:
    at = t.sweep.labels.index(m[2])
    assert t.sweep.labels[at - 1] == m[1]
    return float(m[3]) / 100 == pytest.approx(t.least[at] / t.least[at - 1] - 1, rel=0.06) and t.least[at] > t.least[at - 1]


def falls(t: Truth, m: re.Match[str]) -> bool:
    last = len(t.least) - 1
    drop = 1 - t.least[last] / t.least[last - 1]
    return t.found.at == last and drop > 0 and float(m[1]) / 100 == pytest.approx(drop, rel=0.06, abs=0.0006)


def runner_up(t: Truth, m: re.Match[str]) -> bool:
    at, mine = t.found.at, t.fared[t.found.series, t.found.at].mean()
    others = {s: float(t.fared[s, at].mean()) for s in t.sweep.series if s != t.found.series}
    name = m[1]
    apart = t.found.rivals[0].interval is not None and t.found.rivals[0].interval.low > 0
    return (
        others[name] == min(others.values()) and change(m[3], mine, others[name]) and ("not distinguishable" in m[0]) != apart
    )


def lowest(t: Truth, m: re.Match[str]) -> bool:
    at, mine = t.found.at, t.fared[t.found.series, t.found.at].mean()
    low = float(t.fared[m[1], at].mean())
    return low == t.least[at] < mine and m[2] == format_number(low) and change(m[3], mine, low)


def largest(t: Truth, m: re.Match[str]) -> bool:
    last, other = len(t.sweep.x) - 1, t.found.sizes[-1]
    assert other is not None and other.interval is not None
    value = float(t.fared[t.found.series, last].mean())
    zero = other.interval.low <= 0 <= other.interval.high
    return (
        t.found.at < last and m[1] == t.sweep.labels[last] and m[2] == format_number(value)
        and change(m[3], t.fared[t.found.series, t.found.at].mean(), value) and ("not distinguishable" in m[0]) == zero
    )  # fmt: skip


def slowdown(t: Truth, m: re.Match[str]) -> bool:
    mine = t.fared[t.found.series, t.found.at]
    half = f"at most {format_number(np.median(mine))} times their runtime" if np.median(mine) >= 1.005 else NO_LONGER
    return m[1] == half and m[2] == format_number(mine.mean()) and m[3] == format_number(100 * (mine > mine.mean()).mean())


def waits(t: Truth, m: re.Match[str]) -> bool:
    median = t.metric(t.found.series, "median_wait_s")
    half = f"wait at most {format_time(median)}" if median > 0 else "do not wait"
    return m[1] == half and m[2] == format_time(t.metric(t.found.series, "mean_wait_s"))


def rejected(t: Truth, m: re.Match[str]) -> bool:
    at = t.found.at
    return (m[1], int(m[2]), int(m[3])) == (t.sweep.labels[at - 1], t.rejected[at - 1], t.rejected[at]) and int(m[2]) > int(
        m[3]
    )


BECAUSE: dict[str, Callable[[Truth, re.Match[str]], bool]] = {
    r"From submission to end, half of the jobs take (.+) \(bounded .* is ([\d.,]+); ([\d.,]+) % of .* above it\.": slowdown,
    r"Half of the jobs (.+); the mean wait is (.+)\.": waits,
    r"The next best order, (\w+), has ([\d.,]+) \((.+?)\)\.(?: The two are not distinguishable on these jobs\.)?": runner_up,
    r"The lowest mean is that of (\w+), ([\d.,]+) \((.+?)\)\. The two are not distinguishable on these jobs\.": lowest,
    r"It is the smallest size in the study; .*": lambda t, m: t.found.at == 0 and len(t.sweep.x) > 1,
    r"With the next smaller size, (.+), (\d+) jobs? can never run; with this size, (\d+)\.": rejected,
    r"With (.+), the best order has .* of ([\d.,]+) \((.+)\), which (is too much|alone would be enough)\. .*": smaller,
    r"The lowest mean slowdown still falls at the largest size of the study, by ([\d.]+) % from .*": falls,
    r"It is the largest size .*": lambda t, m: t.found.at == len(t.least) - 1 and t.least[-1] > 0.994 * t.least[-2],
    r"The largest size of the study, (.+), has ([\d.,]+) under the same order \((.+?)\)(?:; the two .*)?\.": largest,
    r"Larger is not always better: from (.+) to (.+), the lowest mean slowdown rises by ([\d.]+) %\.": rises,
}


def checked(lines: list[str], known: dict[str, Callable[[Truth, re.Match[str]], bool]], model: Truth) -> Iterator[str]:
    """Yield the pattern of each sentence; every sentence must match one pattern, and be true."""
    for line in lines:
        matches = [(pattern, m) for pattern in known if (m := re.fullmatch(pattern, line))]
        assert len(matches) == 1, line
        assert known[matches[0][0]](model, matches[0][1]), line
        yield matches[0][0]


@settings(max_examples=150, deadline=None)
@example(table(1, 2, 2, (3, 0, 0, 0), False, False))
@example(table(2, 3, 2, (0, 0, 0, 0), False, True))
@given(TABLES)
def test_every_reason_holds(drawn: tuple[Sweep, dict]) -> None:
    sweep, fared = drawn
    recommendation = choose(sweep, lambda series, at: fared[series, at])
    assert recommendation is not None
    model = Truth(sweep, fared, recommendation)
    patterns = set(checked(sentences.because(recommendation, sweep), BECAUSE, model))
    last = len(sweep.x) - 1
    if last and recommendation.at == last:
        assert len({line for line in patterns if "falls" in line or "It is the largest" in line}) == 1
    risen = [at for at in range(1, last + 1) if model.least[at] > (1 + sentences.SAME) * model.least[at - 1]]
    if recommendation.at < last:
        assert bool(risen) == any(line.startswith("Larger is not always better") for line in patterns)
    if recommendation.at and model.rejected[recommendation.at - 1] > model.rejected[recommendation.at]:
        assert any("can never run" in line for line in patterns)


@settings(max_examples=100, deadline=None)
@example(table(0, 3, 3, (1, 0, 0, 0), False, False))
@given(TABLES)
def test_headline_names_the_choice_and_the_next_sentence_its_equals(drawn: tuple[Sweep, dict]) -> None:
    sweep, fared = drawn
    recommendation = choose(sweep, lambda series, at: fared[series, at])
    assert recommendation is not None
    named = re.match(r"Run (.+?)(?: with|\.)", sentences.headline(recommendation, sweep))
    assert named and named[1] == recommendation.series
    equal = [r.alternative for r in recommendation.rivals if r.interval and r.interval.low <= 0 <= r.interval.high]
    assert (sentences.headline(recommendation, sweep).endswith(" of pool memory in each rack.")) == (len(sweep.x) > 1)
    text = sentences.separation(recommendation, sweep)
    assert bool(text) == bool(equal)
    added = [sweep.value("discrimination_s", name, recommendation.at) for name in (recommendation.series, *equal)]
    fairest = bool(equal) and bool(np.isfinite(added).all()) and added[0] < min(added[1:])
    assert ("adds the least wait" in text) == fairest
    if equal:
        others = re.search(r"slowdown of \w+ is not distinguishable from that of (.+?)(?:\.|, and these|$)", text)
        more = [f"{len(equal) - 2} more"] if len(equal) > 2 else []
        assert others and re.split(r", | or ", others[1]) == [*equal[:2], *more]
    if "differ most in" in text:
        parts = re.findall(r"(\d[\d.,]*[^,:]*?) under (\w+)", text.partition("differ most in ")[2].partition(": ")[2])
        assert [name for _, name in parts] == [recommendation.series, *equal[:2]]
        values_of = {n: [sweep.value(n, name, recommendation.at) for _, name in parts] for n in sentences.TRADEOFFS}
        assert any([sentences._amount(n, v) for v in values] == [p.removeprefix("and ") for p, _ in parts]
                   for n, values in values_of.items() if all(np.isfinite(values)))  # fmt: skip


SPANS = st.tuples(st.integers(-3, 3), st.integers(0, 6)).map(lambda p: (float(p[0]), float(p[0] + p[1])))
"""Bounds of the difference from an alternative, which is on average no better than the choice."""
EMPTY = Sweep("", (0.0,), ("",), (), {})
ALTERNATIVES = st.one_of(
    st.lists(SPANS.filter(lambda span: sum(span) >= 0), max_size=4), st.lists(st.none(), min_size=1, max_size=4)
)


@settings(max_examples=300, deadline=None)
@given(ALTERNATIVES)
def test_certainty_of_the_order_follows_from_the_intervals(bounds: list[tuple[float, float] | None]) -> None:
    rivals = tuple(
        Alternative(f"O{k}", 2.0, 2.0, None if span is None else Interval(sum(span) / 2, *span, 0.95, 60))
        for k, span in enumerate(bounds)
    )
    recommendation = Recommendation("mine", 0, 1.0, np.ones(3), rivals, (None,), (1.0,), (0,))
    text = sentences.certainty(recommendation).text
    apart = [span is not None and not span[0] <= 0 <= span[1] for span in bounds]
    together = [f"O{k}" for k, span in enumerate(bounds) if span is not None and span[0] <= 0 <= span[1]]
    named = re.findall(r"O\d", text.partition("not distinguishable from")[2])
    if not bounds:
        assert text == "only one order was simulated"
    elif bounds[0] is None:
        assert text == "one run each, without intervals"
    else:
        assert named == together
        assert text.startswith("better than O0") == apart[0]
        assert ("all others" in text) == (not together)
    if bounds and bounds[0] is not None:
        low, high = bounds[0]
        (verdict, _) = sentences.certainty_sentences(recommendation, EMPTY, 1)  # whole-number bounds make zero frequent
        same = low == high == 0
        assert verdict.endswith("every job has the same slowdown.") == same
        assert same or (("worse" in verdict), ("better" in verdict)) == (low > 0, high < 0)


def test_headline_names_at_most_three_orders_and_their_largest_difference() -> None:
    """Four indistinguishable orders and two metrics, of which one differs by half and the other hardly."""
    rivals = tuple(Alternative(name, 2.0, 2.0, Interval(0.1, -1.0, 1.2, 0.95, 60)) for name in "ABC")
    recommendation = Recommendation("mine", 0, 1.0, np.ones(3), rivals, (None,), (1.0,), (0,))
    for wide in (True, False):
        metrics = {"throughput_per_100s": (10.0, 10.2 if wide else 10.001), "utilization": (0.4, 0.6 if wide else 0.4001)}
        cells = {
            (name, 0): [
                CellResult({}, 0, name, {m: v[name == "A"] for m, v in metrics.items()}, 9, {}, {}, {}, 0, "", 0.0, 0.0)
            ]
            for name in ("mine", *"ABC")
        }
        sweep = replace(EMPTY, series=("mine", *"ABC"), cells=cells)
        assert sentences.headline(recommendation, sweep) == "Run mine."
        text = sentences.separation(recommendation, sweep)
        assert text.startswith("The mean bounded slowdown of mine is not distinguishable from that of A, B or 1 more")
        assert ("differ most in node utilization: 40 % under mine, 60 % under A" in text) == wide
        assert ("do not differ in any other metric" in text) == (not wide)


@pytest.mark.parametrize("added", [(658.0, 98.0, 50.0), (98.0, 658.0, 50.0), (658.0, math.nan, 50.0)])
def test_fairest_of_the_indistinguishable_orders_is_recommended(added: tuple[float, float, float]) -> None:
    """SJF is faster than WFP3 by a difference that is not significant; FCFS adds less wait than both but is slower."""
    rng = np.random.default_rng(3)
    base = 1 + rng.exponential(3.0, 300)
    noise = rng.normal(0, 0.5, 300)
    fared = {("SJF", 0): base, ("WFP3", 0): base + noise - noise.mean() + 0.01, ("FCFS", 0): base + 2}
    cells = {
        key: [
            CellResult(
                {}, 0, key[0], {GOAL: float(jobs.mean()), "discrimination_s": 86400 * days}, 300, {}, {}, {}, 0, "", 0, 0
            )
        ]
        for (key, jobs), days in zip(fared.items(), added, strict=True)
    }
    sweep = replace(EMPTY, series=("SJF", "WFP3", "FCFS"), cells=cells)
    recommendation = choose(sweep, lambda series, at: fared[series, at])
    assert recommendation is not None
    chosen = "WFP3" if added[1] < added[0] else "SJF"
    assert recommendation.series == chosen and recommendation.value == fared[chosen, 0].mean()
    assert [rival.alternative for rival in recommendation.rivals] == [
        name for name in ("SJF", "WFP3", "FCFS") if name != chosen
    ]
    assert sentences.headline(recommendation, sweep) == f"Run {chosen}."
    assert sentences.certainty(recommendation).alike == ({"SJF", "WFP3"} - {chosen}).pop()
    if chosen == "WFP3":
        text = sentences.separation(recommendation, sweep)
        assert "WFP3 adds the least wait" in text and text.endswith("98 days under WFP3 and 658 days under SJF.")
        assert any(line.startswith("The lowest mean is that of SJF") for line in sentences.because(recommendation, sweep))


@settings(max_examples=60, deadline=None)
@given(SPANS)
def test_verdict_on_another_size_follows_from_its_interval(span: tuple[float, float]) -> None:
    low, high = span
    other = Alternative("8 GiB", 2.0, 2.0, Interval(sum(span) / 2, low, high, 0.95, 60))
    recommendation = Recommendation("mine", 1, 1.0, np.ones(3), (), (other, None), (1.0, 1.0), (0, 0))
    (verdict, _) = sentences.certainty_sentences(recommendation, replace(EMPTY, labels=("8 GiB", "9 GiB")), 1)
    assert verdict.startswith("mine with 8 GiB: ") and verdict.endswith("every job has the same slowdown.") == (
        low == high == 0
    )
    assert ("worse" in verdict, "better" in verdict) == (low > 0, high < 0)
    assert ("not distinguishable" in verdict) == (low <= 0 <= high and not low == high == 0)


@settings(max_examples=100, deadline=None)
@given(TABLES)
def test_certainty_sentences_state_every_interval(drawn: tuple[Sweep, dict]) -> None:
    sweep, fared = drawn
    recommendation = choose(sweep, lambda series, at: fared[series, at])
    assert recommendation is not None
    lines = sentences.certainty_sentences(recommendation, sweep, 3)
    others = [
        o
        for o in (
            recommendation.runner_up,
            *(recommendation.sizes[at] for at in sorted({recommendation.at - 1, len(recommendation.sizes) - 1} - {-1})),
        )
        if o
    ]
    compared = [o for o in others if o.interval is not None]
    assert len(lines) == len(compared) + 1 and f"{recommendation.jobs} job" in lines[-1] and "from 3 seeds" in lines[-1]
    assert "seeds" not in sentences.certainty_sentences(recommendation, sweep, 1)[-1]
    for line, other in zip(lines, compared, strict=False):
        low, high = other.interval.low, other.interval.high
        verdict = "worse" if low > 0 else "better" if high < 0 else "not distinguishable"
        if low == high == 0:
            assert line.endswith("every job has the same slowdown.")
        else:
            assert verdict in line and format_number(low, "+") in line and format_number(high, "+") in line


@settings(max_examples=100, deadline=None)
@given(TABLES)
def test_tradeoffs_hold(drawn: tuple[Sweep, dict]) -> None:
    sweep, fared = drawn
    recommendation = choose(sweep, lambda series, at: fared[series, at])
    assert recommendation is not None
    lines = iter(sentences.tradeoffs(recommendation, sweep))
    for name in sentences.TRADEOFFS:
        values = {s: v for s in sweep.series if np.isfinite(v := sweep.value(name, s, recommendation.at))}
        if not values:
            continue
        best = (min if METRICS[name].better == "lower" else max)(values.values())
        mine = values.get(recommendation.series)
        if mine is None:
            continue
        line = next(lines)
        if "no other order is better" in line:
            assert mine == pytest.approx(best, rel=sentences.SAME) and sentences._amount(name, mine) in line
        else:
            assert mine != best and f"{sentences._amount(name, mine)} compared with {sentences._amount(name, best)}" in line
            assert (not best) or change(line.rpartition("(")[2], best, mine)
    longer = sweep.value("mean_degradation", recommendation.series, recommendation.at)
    assert (next(lines, None) is not None) == (longer > 0)


def test_sizes_are_described_by_what_they_measure() -> None:
    tables = {"pool": [{"name": "memory", "per": "rack"}, {"name": "nvme", "per": "machine"}], "rack": [{"count": 4}],
              "node": [{"name": "thin"}]}  # fmt: skip
    phrases = {path: SizeText.of(path, tables).phrase("8 GiB") for path in (
        "machine.pool.memory.memory", "machine.pool.nvme.storage", "machine.node.thin.memory", "workload.jobs")}  # fmt: skip
    assert list(phrases.values()) == [
        "8 GiB of pool memory in each rack", "8 GiB of storage (nvme) in the whole machine",
        "8 GiB of memory in each thin node", "8 GiB of workload.jobs",
    ]  # fmt: skip
    assert SizeText.of("machine.rack.0.count", tables).phrase("5") == "5 racks"
