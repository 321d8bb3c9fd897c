"""`poolwise node-agent`: the daemon of a node that makes devices of other nodes usable."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import typer

from poolwise.cli.examples import examples

_PACKAGES = ("aiohttp", "grpc", "msgspec", "prometheus_client", "yaml")


def node_agent(
    config: Path = typer.Argument(
        metavar="CONFIG.toml", help="Devices, templates and links; all nodes may have the same file."
    ),
    kubeconfig: Path | None = typer.Option(
        None, "--kubeconfig", help="How to reach the API server; without it $KUBECONFIG, or the cluster that this runs in."
    ),
    node: str = typer.Option("", "--node", help="Name of this node; without it $NODE_NAME, else the host's name."),
    port: int = typer.Option(
        9465, "--port", min=0, max=65535, help="Port of /metrics, /healthz and /readyz on loopback; 0: the system chooses."
    ),
    check: bool = typer.Option(False, "--check", help="Read the file, say what this node would publish, and end."),
) -> None:
    """Publish this node's devices, attach those of other nodes for its pods, and hand them to containers (DRA and CDI)."""
    from importlib.util import find_spec

    from poolwise.errors import InputError

    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise InputError(f"the package {missing[0]} is missing", remedy="pip install 'poolwise[kubernetes]'")
    from poolwise.live.node_agent.config import load_node_agent

    file, name = load_node_agent(config), node or os.environ.get("NODE_NAME") or socket.gethostname().lower()
    if check:
        _tell(config, file, name)
        return
    from poolwise.live.kubernetes.access import Access
    from poolwise.live.logs import log_to
    from poolwise.live.node_agent.serve import serve_node_agent
    from poolwise.live.node_agent.template import validate_value

    validate_value("node", name, {})
    access = Access.discover(kubeconfig)
    log_to()
    serve_node_agent(file, name, access, port)


def _tell(config: Path, file: object, node: str) -> None:
    """Say what a node would publish."""
    import json

    from poolwise.cli.console import out
    from poolwise.live.node_agent.config import NodeAgentFile
    from poolwise.live.node_agent.slices import desired_specs

    assert isinstance(file, NodeAgentFile)
    specs = [spec for pool in desired_specs(file, node).values() for spec in pool]
    devices = sum(len(spec["devices"]) for spec in specs)
    out.print(
        f"{config}: {node} publishes {devices} devices in {len(specs)} slices", markup=False, highlight=False, soft_wrap=True
    )
    for spec in specs:
        out.print(json.dumps(spec, indent=1), markup=False, highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("node-agent", epilog=examples("poolwise node-agent node-agent.toml --node gpu-a --check"))(node_agent)
