"""Reports in a browser: they load nothing, respond to mouse and keyboard, and are accessible on all media."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from poolwise.presentation.answer import Answer, DecisionCard
from poolwise.presentation.figure import Axis, Bars, Box, Boxes, Curves, Scatter
from poolwise.presentation.table import Table
from poolwise.report.page import render
from poolwise.report.study import study_answer
from poolwise.studies import StudyResult
from tests.helpers.chromium import CHROMIUM, NO_CHROMIUM, browser
from tests.report.conftest import result as result

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)

LONG_NAMES = [f"a machine with a long name, and policies number {k}" for k in range(6)]
SMALL = (
    "[...document.querySelectorAll('.live svg text')].map(e => [e.textContent, e.getBoundingClientRect()])"
    ".filter(([text, box]) => text && Math.max(box.width, box.height) < 9).map(([text]) => text)"
)
"""JavaScript expression: texts of charts that are too small to read."""
MEDIA = ((1366, False, "screen"), (1366, True, "screen"), (390, False, "screen"), (1366, False, "print"))


def small_page() -> Answer:
    """Return a page with one of each part, and with long names."""
    rows = [[name, "1 day 4 h", "2 h" if k else ""] for k, name in enumerate(LONG_NAMES)]
    curves = Curves(
        "curves", "Slowdown by size", "Lower is better.", x=(128.0, 384.0, 2048.0),
        series={"FCFS": (5.0, 4.0, 2.0), "FM": (3.0, 2.5, 1.5)}, interval={"FM": ((2.0, 2.0, 1.0), (4.0, 3.0, 2.0))},
        x_axis=Axis("pool memory (GiB)", log=True, ticks={128.0: "128", 384.0: "384", 2048.0: "2048"}),
        y_axis=Axis("slowdown", log=True), highlight=384.0, target=(2.6, "target"), direct=True,
    )  # fmt: skip
    points = {name: ([float(k)], [float(k)]) for k, name in enumerate(LONG_NAMES)}
    scatter = Scatter("scatter", "Points", "Each once.", series=points, x_axis=Axis("x"), y_axis=Axis("y"))
    bars = Bars("bars", "Bars", "By resource.", groups=["bandwidth", "cores", "memory", "storage"],
                series={name: (1.0, 2.0, 3.0, 4.0) for name in LONG_NAMES[:2]}, y_axis=Axis("stranded (%)"))  # fmt: skip
    box = Box(0.0, 2.0, 0.0, 1.0, "used", "rack 0: 40 % used of 8 GiB")
    boxes = Boxes("boxes", "Machine", "Racks.", boxes=(box,), series=("used",), x_axis=Axis("rack"), y_axis=Axis(""))
    wide = Table("All results", LONG_NAMES, [["1,234.5"] * 6], chosen=0)
    return Answer(
        "A page", "Choose 768 GiB of pool memory.", first=["Load 0.9."], because=["It is the cheapest."],
        decision=DecisionCard(rows, [], reference="today"), main=curves, sections={"How certain": ["Certain."]},
        notes=["A note."], figures=[scatter, bars, boxes],
        tables=[wide], provenance={"version": "1"},
    )  # fmt: skip


@pytest.mark.long
def test_page_in_a_browser(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render(small_page()), encoding="utf-8")
    asyncio.run(_check_page((tmp_path / "page.html").as_uri(), 4))


@pytest.mark.long
def test_study_report_in_a_browser(result: StudyResult, tmp_path: Path) -> None:
    page = study_answer(result)
    (tmp_path / "report.html").write_text(render(page), encoding="utf-8")
    asyncio.run(_check_page((tmp_path / "report.html").as_uri(), len(page.charts), MEDIA[1:3]))


async def _check_page(address: str, charts: int, media: Sequence[tuple[int, bool, str]] = MEDIA) -> None:
    async with browser() as tab:
        await tab.set_media(1366)
        await tab.open(address)
        await tab.until(f"document.querySelectorAll('figure[data-live=yes]').length === {charts}")
        assert not [url for url in tab.requests if not url.startswith(("file:", "data:"))], "the page loads nothing"
        await tab.run("document.querySelector('.chart').focus()")
        await tab.press("ArrowRight")
        first = await tab.run("document.querySelector('figure output').textContent")
        await tab.press("ArrowRight")
        second = await tab.run("document.querySelector('figure output').textContent")
        assert first.startswith("FCFS, 128: ") and second.startswith("FCFS, 384: "), "arrow keys step through the values"
        await tab.run("location.hash = '#provenance'")
        await tab.until("document.getElementById('provenance').open")
        answered = "document.querySelector('.answer').getBoundingClientRect().bottom + scrollY"
        assert await tab.run(answered) < 2 * 768, "the decision is within two screens"
        for width, dark, medium in media:
            await tab.set_media(width, dark, medium)
            wide = await tab.run("document.documentElement.scrollWidth")
            assert wide <= width, f"overflow at {width}"
            if medium != "print":
                await tab.until(f"{SMALL}.length === 0")  # after the charts are redrawn for this width
            assert await tab.violations() == [], (width, dark, medium)


def test_page_is_readable_without_scripts(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render(small_page()), encoding="utf-8")
    asyncio.run(_read((tmp_path / "page.html").as_uri()))


async def _read(address: str) -> None:
    async with browser() as tab:
        await tab.open_without_scripts(address)
        size = "(box => box.width > 200 && box.height > 100)(document.querySelector('.still svg').getBoundingClientRect())"
        assert await tab.run(size)
        assert not await tab.run("document.querySelector('figure[data-live]')")
