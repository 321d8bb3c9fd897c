"""The report of a study in a browser: it loads nothing, answers mouse and keyboard, and is accessible in every dress."""

import asyncio
from pathlib import Path

import pytest

from poolwise.report.page import render
from poolwise.report.study import study_page
from poolwise.studies import StudyResult
from tests.helpers.chromium import CHROMIUM, browser
from tests.report.conftest import result as result

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"), pytest.mark.long]


def test_the_report_in_a_browser(result: StudyResult, tmp_path: Path) -> None:
    page = study_page(result)
    (tmp_path / "report.html").write_text(render(page), encoding="utf-8")
    address = (tmp_path / "report.html").as_uri()
    asyncio.run(_look(address, len(page.charts)))


async def _look(address: str, charts: int) -> None:
    async with browser() as tab:
        await tab.look(1366)
        await tab.open(address)
        await tab.until(f"document.querySelectorAll('figure[data-live=yes]').length === {charts}")
        assert not [url for url in tab.requests if not url.startswith(("file:", "data:"))], "it loads nothing"
        await tab.run("document.querySelector('.chart').focus()")
        await tab.press("ArrowRight")
        first = await tab.run("document.querySelector('figure output').textContent")
        await tab.press("ArrowRight")
        second = await tab.run("document.querySelector('figure output').textContent")
        assert first.startswith("FCFS, 128: ") and second.startswith("FCFS, 384: "), "arrow keys step through the values"
        await tab.run("location.hash = '#provenance'")
        await tab.until("document.getElementById('provenance').open")
        answered = "document.querySelector('.answer').getBoundingClientRect().bottom + scrollY"
        assert await tab.run(answered) < 2 * 768, "two screens to the decision"
        for width, dark, media in (
            (1366, False, "screen"),
            (1366, True, "screen"),
            (390, False, "screen"),
            (1366, False, "print"),
        ):
            await tab.look(width, dark, media)
            wide = await tab.run("document.documentElement.scrollWidth")
            assert wide <= width, f"cut at {width}"
            assert await tab.violations() == [], (width, dark, media)


def test_the_report_is_read_without_scripts(result: StudyResult, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(render(study_page(result)), encoding="utf-8")
    asyncio.run(_read((tmp_path / "report.html").as_uri()))


async def _read(address: str) -> None:
    async with browser() as tab:
        await tab.call("Emulation.setScriptExecutionDisabled", value=True)
        await tab.call("Page.navigate", url=address)
        await asyncio.sleep(1)
        await tab.call("Emulation.setScriptExecutionDisabled", value=False)
        size = "(box => box.width > 200 && box.height > 100)(document.querySelector('.still svg').getBoundingClientRect())"
        assert await tab.run(size)
        assert not await tab.run("document.querySelector('figure[data-live]')")
