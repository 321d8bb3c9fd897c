"""`poolwise serve`: browse the studies of a folder in a local web page."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.cli.app import app
from poolwise.cli.console import print_verbatim
from poolwise.cli.examples import command
from poolwise.errors import InputError


@command(app, "poolwise serve results")
def serve(
    folder: Path = typer.Argument(metavar="DIR", help="Folder with study files and result folders."),
    port: int = typer.Option(8765, min=0, max=65535, help="Port on 127.0.0.1; 0 picks a free port."),
) -> None:
    """Browse studies and results in a local web page.

    The page can also run studies, comparisons and forecasts. Prints the address, which contains an access token, and serves it
    until interrupted. Only this computer can connect.
    """
    try:
        from aiohttp import web

        from poolwise.serve.app import make_app
        from poolwise.serve.auth import LOOPBACK
    except ModuleNotFoundError as missing:
        problem = f"the Python module {missing.name} is missing"
        raise InputError(problem, remedy="pip install 'poolwise[serve]'") from missing

    import asyncio
    import secrets

    token = secrets.token_urlsafe(24)

    async def main() -> None:
        runner = web.AppRunner(make_app(folder, token), access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, LOOPBACK, port)
            await site.start()
            actual = runner.addresses[0][1]
            print_verbatim(f"http://{LOOPBACK}:{actual}/?token={token}")
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    asyncio.run(main())
