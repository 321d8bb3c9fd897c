"""`poolwise agent`: the daemons of a node, for its memory and for remote devices."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from poolwise.cli.app import app
from poolwise.cli.console import print_line, print_verbatim
from poolwise.cli.examples import command
from poolwise.errors import InputError
from poolwise.quantities import format_count

agents = typer.Typer(help="Run a daemon that manages a node's memory or fabric devices.", no_args_is_help=True)


_PACKAGES = ("aiohttp", "grpc", "msgspec", "prometheus_client", "yaml")


@command(agents, "poolwise agent devices node-agent.toml --node gpu-a --check")
def devices(
    config: Path = typer.Argument(metavar="CONFIG.toml", help="Devices, templates and links; all nodes may use the same file."),
    kubeconfig: Path | None = typer.Option(
        None, "--kubeconfig", help="Kubeconfig file; defaults to $KUBECONFIG, then to the cluster that the agent runs in."
    ),
    node: str = typer.Option("", "--node", help="Name of this node; defaults to $NODE_NAME, then to the host name."),
    port: int = typer.Option(
        9465, "--port", min=0, max=65535, help="Loopback port of /metrics, /healthz and /readyz; 0 picks a free port."
    ),
    check: bool = typer.Option(False, "--check", help="Print what this node would publish, and exit."),
) -> None:
    """Publish the devices of a node and attach remote ones for its pods.

    Publishes this node's devices through Kubernetes DRA, attaches devices of other nodes for its pods, and passes them to
    containers through CDI.
    """
    import socket
    from importlib.util import find_spec

    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise InputError(f"the package {missing[0]} is missing", remedy="pip install 'poolwise-agents[kubernetes]'")
    from poolwise_agents.node_agent.config import load_node_agent

    file, name = load_node_agent(config), node or os.environ.get("NODE_NAME") or socket.gethostname().lower()
    if check:
        _print_slices(config, file, name)
        return
    from poolwise.live.kubernetes.access import Access
    from poolwise.live.logs import log_to
    from poolwise_agents.node_agent.serve import serve_node_agent
    from poolwise_agents.node_agent.template import validate_value

    validate_value("node", name, {})
    access = Access.discover(kubeconfig)
    log_to()
    serve_node_agent(file, name, access, port)


def _print_slices(config: Path, file: object, node: str) -> None:
    """Print the resource slices that a node would publish."""
    import json

    from poolwise_agents.node_agent.config import NodeAgentFile
    from poolwise_agents.node_agent.slices import desired_specs

    assert isinstance(file, NodeAgentFile)
    specs = [spec for pool in desired_specs(file, node).values() for spec in pool]
    count = sum(len(spec["devices"]) for spec in specs)
    print_line(f"{config}: {node} publishes {format_count(count, 'device')} in {format_count(len(specs), 'slice')}")
    for spec in specs:
        print_verbatim(json.dumps(spec, indent=1))


@command(agents, "poolwise agent memory memory-agent.toml --dry-run --seconds 60")
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
    seconds: float | None = typer.Option(
        None, "--seconds", min=0, help="Stop after this many seconds; otherwise run until stopped."
    ),
    release: bool = typer.Option(False, "--release", help="Restore the limits that a killed agent left behind, and exit."),
) -> None:
    """Keep running workloads within their tolerances by moving local memory.

    Watches workloads in control groups, estimates their slowdowns, and moves local memory between them. On exit, all limits are
    restored.
    """
    from importlib.util import find_spec

    if find_spec("prometheus_client") is None:
        raise InputError("the package prometheus_client is missing", remedy="pip install 'poolwise-agents[agent]'")
    from poolwise.live.logs import log_to
    from poolwise_agents.memory_agent.config import load_memory_agent
    from poolwise_agents.memory_agent.serve import restore_all_limits, serve_memory_agent

    file = load_memory_agent(config)
    log_to()
    if release:
        restore_all_limits(file)
        return
    serve_memory_agent(file, port=port, dry_run=dry_run, seconds=seconds)


app.add_typer(agents, name="agent")
