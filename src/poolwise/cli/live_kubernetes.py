"""`poolwise live kubernetes`: schedule the pods of a Kubernetes cluster, or watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.live import LiveOptions, live_app, named_scheduler, needs, run_live

if TYPE_CHECKING:
    from poolwise.live.kubernetes.platform import KubernetesPlatform
    from poolwise.model import Continuation


def kubernetes(
    scheduler: str = typer.Option(help="SCHEDULER.toml, or catalog:NAME (`poolwise list schedulers`)."),
    kubeconfig: Path | None = typer.Option(
        None, help="How to reach the cluster; else $KUBECONFIG, the cluster that this runs in, or ~/.kube/config."
    ),
    name: str = typer.Option("poolwise", help="Pods with this schedulerName are scheduled, and no others."),
    shadow: bool = typer.Option(False, "--shadow", help="Decide, and write nothing but the record."),
    machine: Path | None = typer.Option(None, help="OVERLAY.toml: what the cluster's objects do not say (racks, whole nodes)."),
    lease: str | None = typer.Option(None, metavar="NAMESPACE/NAME", help="Schedule only while this lease is held."),
    lease_seconds: float = typer.Option(15.0, min=1.0, help="How long the lease lasts after each renewal."),
    gang_limit: float = typer.Option(60.0, min=0.1, help="Seconds for which only a part of a gang may have nodes."),
    attach: float = typer.Option(600.0, min=0.1, help="Seconds for which binding conditions of devices are awaited."),
    state: Path | None = typer.Option(None, help="Folder for what the next run needs to go on (priorities that count passes)."),
    record: Path | None = typer.Option(None, help="Append decisions and what happened to a file, for `poolwise compare`."),
    port: int | None = typer.Option(
        None, min=0, max=65535, help="Serve /metrics, /healthz and /readyz on this port of the host."
    ),
    host: str = typer.Option("127.0.0.1", help="Address on which --port is served."),
    seed: int = typer.Option(0, min=0, help="Seed of all that is drawn."),
    seconds: float | None = typer.Option(None, min=0.0, help="End after so many seconds; else run until stopped."),
) -> None:
    """Schedule the pods of a cluster until SIGTERM or Ctrl-C; a later run, or another replica, goes on where this one ended."""
    needs("kubernetes", "aiohttp", "cel", "msgspec", "yaml")
    from prometheus_client import CollectorRegistry

    from poolwise.live.endpoints import serve_endpoints
    from poolwise.live.kubernetes.access import Access
    from poolwise.live.kubernetes.actions import ClusterActions, ShadowActions
    from poolwise.live.kubernetes.lease import Leadership
    from poolwise.live.kubernetes.overlay import read_layout
    from poolwise.live.kubernetes.platform import KubernetesPlatform
    from poolwise.live.kubernetes.shadow_mode import ShadowKubernetes
    from poolwise.live.kubernetes.watch_client import WatchClient

    layout, wanted = read_layout(machine), named_scheduler(scheduler)
    leadership = Leadership(*_namespace_and_name(lease), lease_seconds) if lease is not None and not shadow else None
    link = WatchClient(Access.discover(kubeconfig), leadership=leadership, attach_timeout=attach)
    try:
        if leadership is not None and port is not None:
            with serve_endpoints(CollectorRegistry(), lambda: "another replica leads", port, host):
                link.open()
        else:
            link.open()
        writes = ShadowActions() if shadow else ClusterActions(link, name)

        def make(continued: Continuation | None) -> KubernetesPlatform:
            platform = ShadowKubernetes if shadow else KubernetesPlatform
            return platform(link, name, wanted, writes, layout, continued=continued, gang_limit=gang_limit)

        mode = "shadow" if shadow else "live"
        run_live(LiveOptions(scheduler, mode, seed, state, record, port, seconds, host), make)
    finally:
        link.close()


def _namespace_and_name(lease: str) -> tuple[str, str]:
    from poolwise.errors import InputError

    namespace, _, name = lease.partition("/")
    if not namespace or not name:
        raise InputError(f"'{lease}' names no lease", field="--lease", remedy="write NAMESPACE/NAME")
    return namespace, name


def register(app: typer.Typer) -> None:
    """Add the command."""
    live_app.command("kubernetes", epilog=examples("poolwise live kubernetes --scheduler catalog:fm-easy"))(kubernetes)
