"""Report of a study: the answer follows the rule, the sentences follow the numbers, and the page loads nothing."""

import math
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from poolwise.metrics.slowdown import wait_s
from poolwise.presentation.glossary import ADDRESS, glossary
from poolwise.presentation.table import cell_text
from poolwise.quantities import parse
from poolwise.report.page import render
from poolwise.report.recommendation import ENOUGH, answer
from poolwise.report.run_parts import best_of
from poolwise.report.sentences import certainty_sentences
from poolwise.report.study import RESULTS, study_answer
from poolwise.report.sweep import Sweep
from poolwise.studies import StudyResult
from poolwise.studies.cell_store import CellStore


def test_sweep_puts_sizes_along_x_and_orders_into_series(result: StudyResult) -> None:
    sweep = Sweep.of(result)
    assert sweep.x_name == "machine.pool.memory.memory"
    assert sweep.labels == ("128 GiB", "384 GiB", "2048 GiB")
    assert sweep.x == (128 * 1024, 384 * 1024, 2 * 1024 * 1024)
    assert sweep.series == ("FCFS", "SJF", "FM")
    assert len(sweep.cells) == 9


def test_too_many_series_are_sampled_and_the_page_states_it(result: StudyResult, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = study_answer(result)
    monkeypatch.setattr("poolwise.report.sweep.MAX_SERIES", 2)
    page, sweep = study_answer(result), Sweep.of(result)
    ranked = sweep.best("mean_bounded_slowdown", 1)
    assert set(sweep.sample("mean_bounded_slowdown", 1).series) == {ranked[0], ranked[-1]}
    assert (page.headline, page.because) == (whole.headline, whole.because), "the answer is chosen from all combinations"
    assert [note for note in page.notes if note not in whole.notes] == [
        "Charts and tables show 2 of 3 combinations: the best one, and others evenly spaced in rank. "
        "The answer is chosen from all combinations, which results.csv lists."
    ]
    shown, every = (next(t for t in answer_page.tables if t.title == "All results") for answer_page in (page, whole))
    assert (len(shown.rows), len(every.rows)) == (2 * 3, 3 * 3)
    assert page.main is not None and len(page.main.series) == 2


def test_pool_size_changes_the_result(result: StudyResult) -> None:
    sweep = Sweep.of(result)
    for series in sweep.series:
        small, _, large = sweep.values("mean_bounded_slowdown", series)
        assert small > large


def test_answer_is_the_smallest_size_that_is_enough(result: StudyResult) -> None:
    sweep = Sweep.of(result)
    recommendation = answer(result, sweep)
    assert recommendation is not None
    rejected = [max(sum(c.rejected.values()) for s in sweep.series for c in sweep.cells[s, at]) for at in range(3)]
    best = [min(sweep.value("mean_bounded_slowdown", s, at) for s in sweep.series) for at in range(3)]
    able = [at for at in range(3) if rejected[at] == min(rejected)]
    least = min(best[at] for at in able)
    assert recommendation.at == next(at for at in able if best[at] <= (1 + ENOUGH) * least)
    assert recommendation.value == best[recommendation.at]
    assert recommendation.series == min(sweep.series, key=lambda s: sweep.value("mean_bounded_slowdown", s, recommendation.at))
    assert [rival.value for rival in recommendation.rivals] == sorted(rival.value for rival in recommendation.rivals)


def test_rivals_are_compared_on_the_same_jobs(result: StudyResult) -> None:
    sweep = Sweep.of(result)
    recommendation = answer(result, sweep)
    assert recommendation is not None
    for rival in recommendation.rivals:
        assert rival.interval is not None
        assert rival.interval.mean == pytest.approx(rival.value - recommendation.value)
        assert rival.interval.n == recommendation.jobs


def test_certainty_states_whether_the_interval_excludes_zero(result: StudyResult) -> None:
    sweep = Sweep.of(result)
    recommendation = answer(result, sweep)
    assert recommendation is not None
    first = certainty_sentences(recommendation, sweep, 1)[0]
    assert ("not distinguishable" in first) != recommendation.rivals[0].certain


class Page(HTMLParser):
    """Collects the addresses that a browser would load, and checks that tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "a":  # a link loads nothing until it is followed
            self.loads += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v and not v.startswith("#")]
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "a":  # a link loads nothing until it is followed
            self.loads += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v and not v.startswith("#")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_loads_nothing_and_follows_the_theme(result: StudyResult) -> None:
    html = render(study_answer(result))
    page = Page()
    page.feed(html)
    assert not page.loads
    assert not page.open
    assert "A &lt;small&gt; study" in html
    assert "prefers-color-scheme: dark" in html
    assert html.partition("<script>")[0].count("<svg") == len(study_answer(result).charts)
    drawn = "".join(re.findall(r"<svg.*?</svg>", html.partition("<script>")[0], re.DOTALL))
    colors = set(re.findall(r"#[0-9a-f]{6}", drawn))
    assert not colors, "colors of figures must be variables of the page"
    assert "var(--series-0)" in drawn
    assert "nan" not in re.sub(r"<[^>]*>", " ", html.partition("<script>")[0]).lower().split()


def test_page_ends_with_the_terms_that_it_uses(result: StudyResult) -> None:
    html = render(study_answer(result))
    match = re.search(r'<details id="terms">(.*?)</details>\s*</main>', html, re.DOTALL)
    assert match is not None
    terms = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", match[1])
    text = unescape(
        re.sub(r"<(script|style|svg)\b.*?</\1>|<[^>]*>", " ", html.partition('<details id="terms">')[0], flags=re.DOTALL)
    )
    assert "bounded slowdown" in dict(terms) and "ResourceClaim" not in dict(terms)
    for term, definition in terms:
        assert term.casefold() in text.casefold()
        assert unescape(definition) == glossary()[term].replace("`", "")
    assert f'<a href="{ADDRESS}">glossary</a>' in match[1]


def test_equal_results_give_equal_pages(result: StudyResult) -> None:
    assert render(study_answer(result)) == render(study_answer(result))


def test_front_contains_the_points_that_no_other_dominates() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        points = {str(k): (float(x), float(y)) for k, (x, y) in enumerate(rng.integers(0, 6, (7, 2)))}
        on_front = best_of(points)
        for name, (x, y) in points.items():
            dominated = any((a <= x and b < y) or (a < x and b <= y) for a, b in points.values())
            assert (name in on_front) != dominated


def test_three_numbers_of_the_report_are_those_of_the_saved_runs(result: StudyResult) -> None:
    """Recompute mean wait, discrimination and its tenth from the saved times alone, in plain Python."""
    store = CellStore(result.folder)
    saved = {cell.key: store.load(cell.key)[1].to_frame().to_dicts() for cell in result.cells}
    ran = set.intersection(*({row["id"] for row in rows if row["status"] == "finished"} for rows in saved.values()))
    (table,) = [table for table in study_answer(result).tables if table.title == RESULTS]
    column = {name.removesuffix(" (s)"): at for at, name in enumerate(table.columns)}
    shown = {(row[0], row[1]): row for row in table.rows}
    for cell in result.cells:
        order, size = cell.parameters.values()
        wait = {row["id"]: (row["start"] - row["submit"]) / 1e9 for row in saved[cell.key]}
        measured = ran & {row["id"] for row in saved[cell.key][50:]}  # after the warm-up, in the order of submission
        fcfs = {i: s for i, s in zip(result.baseline(cell).id.tolist(), wait_s(result.baseline(cell)).tolist(), strict=True)}
        added = sorted((wait[i] - fcfs[i] for i in measured if fcfs[i] == fcfs[i]), reverse=True)
        tenth = math.ceil(len(added) / 10)
        expected = {
            "mean wait": sum(wait[i] for i in measured) / len(measured),
            "discrimination: wait added, summed over the compared jobs that wait longer": sum(a for a in added if a > 0),
            "wait added, summed over the most delayed 10 % of all compared jobs": sum(a for a in added[:tenth] if a > 0),
        }
        cells = shown[f"{parse(size, 'memory') // 1024} GiB", str(order).upper()]
        assert {name: cells[column[name]] for name in expected} == {name: cell_text(v, "s") for name, v in expected.items()}
        assert cell.metrics["compared_jobs"] == len(added)
