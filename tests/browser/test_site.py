"""The documentation site in a browser: search, dark mode, code that copies, and no page wider than the window."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.helpers.chromium import CHROMIUM, NO_CHROMIUM, Tab, browser

pytestmark = [pytest.mark.long, pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)]

ROOT = Path(__file__).parents[2]
PAGES = ("index", "how-to/own-placement", "explanation/performance", "reference/api/orders")


def test_site_in_a_browser(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    asyncio.run(_visit(tmp_path))


async def _visit(site: Path) -> None:
    app = web.Application()
    app.router.add_static("/", site)
    server = TestServer(app)
    async with server, browser() as tab:
        home = str(server.make_url("/"))
        for width in (1366, 390):
            await tab.set_media(width)
            for page in PAGES:
                await tab.open(f"{home}{page}.html")
                assert await tab.run("document.documentElement.scrollWidth <= window.innerWidth"), (page, width)
        await tab.set_media(1366)
        await tab.open(f"{home}how-to/own-placement.html")
        await _code_is_copied(tab)
        await _search(tab)
        await _dark(tab, home)
        assert not [url for url in tab.requests if not url.startswith((home, "data:", "about:", "blob:"))], "no other host"


async def _code_is_copied(tab: Tab) -> None:
    """Click the button of the first code block, and read what it hands to the clipboard."""
    button = "[data-clipboard-target], button[data-md-type='copy']"
    await tab.until(f'document.querySelector("{button}")')
    await tab.run(
        "document.addEventListener('copy', () => { window.copied = document.activeElement.value || String(getSelection()) });"
        "navigator.clipboard.writeText = async text => { window.copied = text }"
    )
    await tab.click(button)
    await tab.until("window.copied")
    assert await tab.run("window.copied.trim() == document.querySelector('pre code').textContent.trim()")


async def _search(tab: Tab) -> None:
    await tab.click("input.md-search__input")
    await tab.write("conservative backfilling")
    await tab.until("document.querySelectorAll('.md-search-result__item').length > 3")
    text = await tab.run(
        "[...document.querySelectorAll('.md-search-result__item a')].map(a => a.getAttribute('href')).join(' ')"
    )
    assert "backfill" in text


async def _dark(tab: Tab, home: str) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light = await tab.run(background)
    await tab.set_media(1366, dark=True)
    await tab.open(f"{home}index.html")
    assert await tab.run(background) != light
