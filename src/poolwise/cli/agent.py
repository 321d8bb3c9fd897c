"""`poolwise agent node`: move local memory between the running workloads of a Linux node."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.cli.examples import examples

agents = typer.Typer(help="Watch running workloads and hold them within their tolerances.", no_args_is_help=True)


@agents.command("node", epilog=examples("poolwise agent node memory-agent.toml --dry-run --seconds 60"))
def node(
    config: Path = typer.Argument(metavar="CONFIG.toml", help="Control groups to watch, tolerances, and memory to give out."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Look, say what it would do, and write nothing."),
    port: int | None = typer.Option(
        None,
        "--port",
        min=0,
        max=65535,
        help="Port of /metrics, /healthz and /readyz on loopback; 0: the system chooses. None by default.",
    ),
    seconds: float | None = typer.Option(None, "--seconds", min=0, help="End after so many seconds; else when it is stopped."),
    let_go: bool = typer.Option(False, "--let-go", help="Give back the limits that a killed agent has left, and end."),
) -> None:
    """Watch workloads in control groups, estimate how much slower they are, and move local memory between them.

    At its end all limits are as they were before.
    """
    from poolwise.cli.live import needs

    needs("agent")
    from poolwise.live.logs import log_to
    from poolwise.live.memory_agent.config import load_memory_agent
    from poolwise.live.memory_agent.serve import restore_all_limits, serve_memory_agent

    file = load_memory_agent(config)
    log_to()
    if let_go:
        restore_all_limits(file)
        return
    serve_memory_agent(file, port=port, dry_run=dry_run, seconds=seconds)


def register(app: typer.Typer) -> None:
    """Add the commands' common name."""
    app.add_typer(agents, name="agent")
