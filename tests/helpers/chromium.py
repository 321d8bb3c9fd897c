"""A headless Chromium, controlled over the DevTools protocol; Debian's package is sufficient."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp
import axe_core_python

from tests.helpers.waiting import longest_s, wait_until_async

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NO_CHROMIUM = "Chromium is not installed; on Debian: apt-get update && apt-get install -y chromium"
"""Reason to skip the tests in a browser."""
AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


class Tab:
    """A page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket, self.next, self.requests, self.loaded = socket, 0, list[str](), False

    async def call(self, method: str, **settings: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; record the addresses that the page requests in the meantime."""
        self.next += 1
        await self.socket.send_json({"id": self.next, "method": method, "params": settings})
        while True:
            message = json.loads((await self.socket.receive(timeout=longest_s())).data)
            if message.get("method") == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            if message.get("method") in ("Page.frameStartedLoading", "Page.loadEventFired"):
                self.loaded = message["method"] == "Page.loadEventFired"
            if message.get("id") == self.next:
                if "navigated" in message.get("error", {}).get(
                    "message", ""
                ):  # the page reloaded under the call: ask the new one
                    return await self.call(method, **settings)
                assert "error" not in message, message
                return dict(message["result"])

    async def run(self, script: str) -> Any:
        """Return the value of an expression, with promises awaited."""
        reply = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true."""
        try:
            await wait_until_async(lambda: self.run(f"Boolean({script})"), script)
        except AssertionError as error:
            error.add_note(f"the page: {await self.run('document.body.innerText.slice(0, 2000)')}")
            raise

    async def open(self, address: str) -> None:
        """Open an address and wait until it is loaded."""
        await self.call("Page.navigate", url=address)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def open_without_scripts(self, address: str) -> None:
        """Open an address with scripts disabled, wait until it is loaded, and enable scripts again."""
        await self.call("Emulation.setScriptExecutionDisabled", value=True)
        await self.call("Page.navigate", url=address)
        await wait_until_async(lambda: self._has_loaded(address), f"{address} is loaded")
        await self.call("Emulation.setScriptExecutionDisabled", value=False)

    async def _has_loaded(self, address: str) -> bool:
        reply = await self.call("Page.getFrameTree")  # receives the events before it, too
        return bool(reply["frameTree"]["frame"]["url"] == address and self.loaded)

    async def set_media(self, width: int, dark: bool = False, media: str = "screen") -> None:
        """Set the width, the theme, and the media type (screen or print)."""
        await self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", media=media, features=[theme])

    async def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            await self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                text="\r" if key == "Enter" and kind == "keyDown" else "",
            )

    async def click(self, selector: str) -> None:
        """Click in the middle of the first element that a selector finds."""
        x, y = await self._middle(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    async def wheel(self, selector: str, down: int) -> None:
        """Scroll the wheel over the middle of the first element that a selector finds."""
        x, y = await self._middle(selector)
        await self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=down)

    async def write(self, text: str) -> None:
        """Type text into the focused element."""
        await self.call("Input.insertText", text=text)

    async def _middle(self, selector: str) -> tuple[float, float]:
        find = f"document.querySelector({json.dumps(selector)})"
        await self.run(f"{find}.scrollIntoView({{block: 'center'}})")
        box = await self.run(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({find}.getBoundingClientRect())")
        return box[0], box[1]

    async def violations(self) -> list[str]:
        """Return the violations of WCAG 2 A and AA that axe-core finds."""
        await self.run(AXE + "; 0")
        rules = '{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}'
        shown = "v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 200)).slice(0, 3)"
        violations = await self.run(f"axe.run(document, {rules}).then(r => r.violations.map({shown}))")
        return list(violations)

    @classmethod
    async def of(cls, socket: aiohttp.ClientWebSocketResponse) -> Self:
        tab = cls(socket)
        for domain in ("Page", "Runtime", "Network"):
            await tab.call(f"{domain}.enable")
        return tab


@asynccontextmanager
async def browser() -> AsyncIterator[Tab]:
    """Start a browser with one empty page, and stop it at the end."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
            f"--user-data-dir={profile}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            ready = Path(profile) / "DevToolsActivePort"
            await wait_until_async(lambda: ready.is_file() and "\n" in ready.read_text(), "Chromium listens")
            port = ready.read_text().split()[0]
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json") as response:
                    page = next(target for target in await response.json() if target["type"] == "page")
                async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=2**27) as socket:
                    yield await Tab.of(socket)
        finally:
            process.terminate()
            await process.wait()
