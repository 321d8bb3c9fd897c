"""`poolwise agent memory`: move local memory between the running workloads of a Linux node."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.cli.agent import agents
from poolwise.cli.examples import examples


def memory(
    config: Path = typer.Argument(metavar="CONFIG.toml", help="Control groups, tolerances and the memory to distribute."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Report intended changes without writing any limit."),
    port: int | None = typer.Option(
        None,
        "--port",
        min=0,
        max=65535,
        help="Loopback port of /metrics, /healthz and /readyz; 0 picks a free port. Off by default.",
    ),
    seconds: float | None = typer.Option(None, "--seconds", min=0, help="Stop after this many seconds; otherwise run on."),
    release: bool = typer.Option(False, "--release", help="Restore the limits that a killed agent left behind, and exit."),
) -> None:
    """Keep running workloads within their tolerances by moving local memory.

    Watches workloads in control groups, estimates their slowdowns, and moves local memory between them. On exit, all limits are
    restored.
    """
    from poolwise.cli.live import require_packages

    require_packages("agent")
    from poolwise.live.logs import log_to
    from poolwise.live.memory_agent.config import load_memory_agent
    from poolwise.live.memory_agent.serve import restore_all_limits, serve_memory_agent

    file = load_memory_agent(config)
    log_to()
    if release:
        restore_all_limits(file)
        return
    serve_memory_agent(file, port=port, dry_run=dry_run, seconds=seconds)


def register(app: typer.Typer) -> None:
    """Register the command."""
    agents.command("memory", epilog=examples("poolwise agent memory memory-agent.toml --dry-run --seconds 60"))(memory)
