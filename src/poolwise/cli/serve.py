"""`poolwise serve`: the studies of a folder in a browser on this machine."""

from __future__ import annotations

import secrets
from pathlib import Path

import typer

from poolwise.cli.examples import examples


def serve(
    folder: Path = typer.Argument(metavar="DIR", help="Folder with study files and folders of results."),
    port: int = typer.Option(8765, min=0, max=65535, help="Port on 127.0.0.1; 0 for any that is free."),
) -> None:
    """Show the studies of a folder in a browser, and run what is asked there; only this machine, with a token.

    Prints the address with its token, and serves until it is interrupted.
    """
    from poolwise.cli.console import out
    from poolwise.errors import InputError

    try:
        from aiohttp import web

        from poolwise.serve.app import make_app
        from poolwise.serve.auth import LOOPBACK
    except ModuleNotFoundError as missing:
        problem = f"the server needs the package {missing.name}"
        raise InputError(problem, remedy="install it with: pip install 'poolwise[serve]'") from missing

    import asyncio

    token = secrets.token_urlsafe(24)

    async def main() -> None:
        runner = web.AppRunner(make_app(folder, token), access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, LOOPBACK, port)
            await site.start()
            there = runner.addresses[0][1]
            out.print(f"http://{LOOPBACK}:{there}/?token={token}", markup=False, highlight=False, soft_wrap=True)
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    asyncio.run(main())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("poolwise serve results"))(serve)
