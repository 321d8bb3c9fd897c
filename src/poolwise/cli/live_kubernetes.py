"""`poolwise live kubernetes`: schedule the pods of a Kubernetes cluster, or watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.live import LiveOptions, live_app, load, needs, run_live

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
    attach: float = typer.Option(600.0, min=0.1, help="Seconds for which binding conditions of devices are awaited."),
    state: Path | None = typer.Option(None, help="Folder for what the next run needs to go on (priorities that count passes)."),
    record: Path | None = typer.Option(None, help="Append decisions and what happened to a file, for `poolwise live compare`."),
    port: int | None = typer.Option(
        None, min=0, max=65535, help="Serve /metrics, /healthz and /readyz on this port of the host."
    ),
    seed: int = typer.Option(0, help="Seed of all that is drawn."),
    seconds: float | None = typer.Option(None, min=0.0, help="End after so many seconds; else run until stopped."),
) -> None:
    """Schedule the pods of a cluster until SIGTERM or Ctrl-C; a later run, or another replica, goes on where this one ended."""
    needs("kubernetes", "aiohttp", "cel", "msgspec", "yaml")
    from poolwise.live.kubernetes.access import Access
    from poolwise.live.kubernetes.layout import read_layout
    from poolwise.live.kubernetes.link import Link
    from poolwise.live.kubernetes.platform import KubernetesPlatform
    from poolwise.live.kubernetes.writes import ClusterWrites, ShadowWrites

    layout = read_layout(machine)
    link = Link(Access.found(kubeconfig), attach_patience=attach)
    link.open()
    try:
        writes = ShadowWrites() if shadow else ClusterWrites(link, name)

        def make(continued: Continuation | None) -> KubernetesPlatform:
            return KubernetesPlatform(link, name, load(scheduler), writes, layout, continued=continued)

        run_live(LiveOptions(scheduler, "shadow" if shadow else "live", seed, state, record, port, seconds), make)
    finally:
        link.close()


def register(app: typer.Typer) -> None:
    """Add the command."""
    live_app.command("kubernetes", epilog=examples("poolwise live kubernetes --scheduler catalog:fm-easy"))(kubernetes)
