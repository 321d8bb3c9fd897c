"""The server in a browser, by mouse and keyboard: concurrent equal questions, explanation of a wait, and the table of runs."""

import asyncio
import json
import re
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from poolwise.quantities import format_time
from poolwise.serve.app import make_app
from tests.helpers import imported_site
from tests.helpers.chromium import CHROMIUM, NO_CHROMIUM, Tab, browser
from tests.helpers.imported_site import BF_INTERVAL

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)

TOKEN = "a-token"
STUDY = """
version = 1
title = "Small"
machine = "catalog:cerit-racks"
[workload]
trace = "catalog:cerit-2013.swf.gz"
first = 9000
jobs = 300
[measure]
warm_up = 20
baseline = false
[vary]
"scheduler.order" = ["fcfs", "sjf"]
"machine.pool.memory.memory" = ["128 GiB", "384 GiB"]
"""
ASK, WHY = (f"form[data-question='/{name}']" for name in ("ask", "explain"))


@pytest.mark.long
def test_server_in_a_browser(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(STUDY)
    asyncio.run(_visit(tmp_path))


@pytest.mark.long
def test_numbers_of_an_imported_site_change_the_answer(tmp_path: Path) -> None:
    asyncio.run(_ask_numbers(imported_site.write(tmp_path)))


async def _ask_numbers(folder: Path) -> None:
    """Change a number in its field and submit it; the answer has the new value, other results, and only columns with values."""
    field = f"input[name={json.dumps('number:' + BF_INTERVAL)}]"
    shown = f"[...document.querySelectorAll({ASK!r} + ' .answer tbody td')].map(cell => cell.textContent)"
    answers: list[list[str]] = []
    server = TestServer(make_app(folder, TOKEN))
    async with server, browser() as tab:
        await tab.set_media(1366)
        await tab.open(f"{server.make_url('/')}?token={TOKEN}")
        assert await tab.run(f"document.querySelector({field!r}).placeholder") == "60"
        for value in ("", "600", "30x", "1200"):
            await tab.click(field)
            await tab.run(f"document.querySelector({field!r}).select()")
            await tab.write(value) if value else None
            await tab.press("Enter")
            await tab.until(
                f"document.querySelector({ASK!r} + ' .answer > *') && document.querySelector({ASK!r} + ' progress').hidden"
            )
            answers.append(await tab.run(shown))
            if value == "30x":
                assert "'30x' is not a number" in await tab.run(f"document.querySelector({ASK!r} + ' .wrong').textContent")
        as_written, longer, wrong, longest = answers
        assert [answer[0] for answer in (as_written, longer, longest)] == [
            "bf_interval 60",
            "bf_interval 600",
            "bf_interval 1200",
        ]
        assert as_written[1:] != longer[1:] != longest[1:] and wrong == []
        assert "-" not in as_written, "columns without values are omitted"
        for width in (1366, 390):
            await tab.set_media(width)
            assert await tab.run("document.documentElement.scrollWidth") <= width and await tab.violations() == []


async def _visit(folder: Path) -> None:
    server = TestServer(make_app(folder, TOKEN))
    async with server, browser() as tab:
        home = str(server.make_url("/"))
        await tab.set_media(1366)
        await tab.open(f"{home}?token={TOKEN}")
        await _durations(tab)
        await _ask(tab, home)
        await tab.open(home)
        await _on_all_media(tab)
        await _why(tab)
        await tab.open(home)
        await _compare(tab)
        assert not [url for url in tab.requests if not url.startswith((home, "data:", "about:"))], (
            "the page loads nothing from elsewhere"
        )


async def _ask(tab: Tab, home: str) -> None:
    """Move the slider by keyboard and run missing cells; a second client that asks the same joins the run."""
    await tab.run(f"document.querySelector({ASK!r} + ' input[type=range]').focus()")
    await tab.press("ArrowRight")
    size = await tab.run(f"document.querySelector({ASK!r} + ' output').value")
    assert int(size) > 128, "the slider responds to the keyboard and shows its value"
    await tab.click(f"{ASK} button")
    await tab.until(f"!document.querySelector({ASK!r} + ' progress').hidden")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as other:
        await other.get(home, params={"token": TOKEN})
        fields = {"study": "small.toml", "machine": "", "scheduler.order": "", "size_path": "machine.pool.memory.memory"}
        answer = await other.post(f"{home}ask", data={**fields, "size": size}, headers={"Origin": home.rstrip("/")})
        joined = (await answer.json())["command"]
        assert joined == 1, "equal questions share one run"
        await tab.until(f"document.querySelector({ASK!r} + ' .answer tbody tr')")
        state = await (await other.get(f"{home}command/{joined}")).json()
    assert state["code"] == 0 and state["done"] == state["total"] > 0
    assert await tab.run(f"[...document.querySelectorAll({ASK!r} + ' tbody td:first-child')].map(e => e.textContent)") == [
        f"FCFS, {size} GiB", f"SJF, {size} GiB",
    ]  # fmt: skip
    assert "Measured on the " in await tab.run(f"document.querySelector({ASK!r} + ' .answer p').textContent")
    assert await tab.run(f"document.querySelector({ASK!r} + ' progress').hidden")


async def _durations(tab: Tab) -> None:
    """Check that the page formats durations like `format_time`."""
    for seconds in (0, 42.4, 59.94, 59.99, 83, 119.9, 3599, 7380, 86399, 90000, 741312, 36060, 1123200, -5400, 150 * 60 + 30):
        assert await tab.run(f"formatDuration({seconds})") == format_time(seconds)


async def _on_all_media(tab: Tab) -> None:
    for width, dark, media in ((1366, True, "screen"), (390, True, "screen"), (390, False, "screen"), (1366, False, "print")):
        await tab.set_media(width, dark, media)
        assert await tab.run("document.documentElement.scrollWidth") <= width, f"overflow at {width}"
        assert await tab.violations() == [], (width, dark, media)
    await tab.set_media(1366)


async def _why(tab: Tab) -> None:
    """Ask for a missing job, then for an existing one; open the page with its nodes, toggle a series, zoom."""
    for job in ("1", "9150"):
        await tab.run(f"document.querySelector({WHY!r} + ' input[name=job]').value = ''")
        await tab.click(f"{WHY} input[name=job]")
        await tab.write(job)
        await tab.press("Enter")
        shown = ".wrong" if job == "1" else "a"
        await tab.until(f"document.querySelector({WHY!r} + ' .answer {shown}')")
    assert (await tab.run(f"document.querySelector({WHY!r} + ' .answer p').textContent")).startswith("Job 9150 ")
    await tab.click(f"{WHY} .answer a")
    await tab.until("document.querySelectorAll('figure[data-live=yes]').length === 1")
    faded = "[...document.querySelectorAll('.live .mark-rect path')].filter(e => +e.getAttribute('opacity') < 0.5).length"
    assert await tab.run(faded) == 0
    await tab.click(".live .role-legend-symbol path, .live .role-legend-symbol")
    await tab.until(f"{faded} > 0")
    ticks = "[...document.querySelectorAll('.live .role-axis-label text')].map(e => e.textContent).join()"
    before = await tab.run(ticks)
    await tab.wheel(".live svg", -200)
    await tab.until(f"{ticks} !== {before!r}")


async def _compare(tab: Tab) -> None:
    """Sort the table of runs, name and tag them, compare two side by side, and remove them."""
    rows = "[...document.querySelectorAll('#runs .scroll tbody tr')]"
    await tab.until(f"{rows}.length === 2")
    assert await tab.run("document.title") == "Small | Poolwise"
    at = await tab.run(f"{rows}[0].cells[4].textContent")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC([+-]\d\d:\d\d)?", at), at
    for mark in ("ascending", "descending"):
        await tab.click("#runs th:nth-child(7) button")
        waits = await tab.run(f"{rows}.map(row => Number(row.cells[6].textContent))")
        assert waits == sorted(waits, reverse=mark == "descending")
        assert await tab.run("document.querySelector('#runs th[aria-sort]').getAttribute('aria-sort')") == mark
    for row in (1, 2):
        await tab.click(f"#runs tbody tr:nth-child({row}) input")
    await tab.run("document.querySelector('#runs').elements.name.value = 'one step more'")
    await tab.run("document.querySelector('#runs').elements.tags.value = 'draft'")
    await tab.click("#keep")
    await tab.until(
        f"{rows}.every(row => row.cells[1].textContent === 'one step more' && row.cells[2].textContent === 'draft')"
    )
    await tab.click("#runs button:not([type])")
    await tab.until("document.querySelector('#runs .answer a')")
    assert await tab.run("document.querySelectorAll('#runs .answer th').length") == 3, "one column per run, and the names"
    assert await tab.violations() == []
    page = await tab.run("document.querySelector('#runs .answer a').href")
    await tab.click("#remove")
    await tab.until("document.querySelector('#runs').hidden && !document.querySelector('#empty').hidden")
    await tab.open(page)
    await tab.until("document.querySelector('.lead') && document.querySelector('.lead').textContent.includes('slowdown')")
