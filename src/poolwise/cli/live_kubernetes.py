"""`poolwise live kubernetes`: schedule the pods of a Kubernetes cluster, or observe them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poolwise.cli.examples import command
from poolwise.cli.live import LiveOptions, live_app, named_scheduler, require_packages, run_live
from poolwise.cli.live_cluster import KubeconfigOption
from poolwise.cli.panels import ADVANCED, SERVICE
from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.live.kubernetes.platform import KubernetesPlatform
    from poolwise.model import Continuation


class KubernetesMode(StrEnum):
    """Modes of the scheduler."""

    SHADOW = "shadow"
    SCHEDULE = "schedule"


@command(live_app, "poolwise live kubernetes --scheduler catalog:fm-easy")
def kubernetes(
    options: LiveOptions,
    kubeconfig: KubeconfigOption = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Schedule only pods with this schedulerName.")] = "poolwise",
    mode: Annotated[
        KubernetesMode, typer.Option(help="shadow decides and records without changing the cluster; schedule binds pods.")
    ] = KubernetesMode.SCHEDULE,
    machine: Annotated[
        Path | None,
        typer.Option(
            metavar="OVERLAY.toml", help="Facts that the cluster's objects lack: racks, whole nodes.", rich_help_panel=ADVANCED
        ),
    ] = None,
    lease: Annotated[
        str | None,
        typer.Option(
            metavar="NAMESPACE/NAME",
            help="Schedule only while holding this lease; none: without one. Defaults to --name in the credentials' namespace.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    lease_seconds: Annotated[
        float, typer.Option(min=1.0, help="Duration (s) of the lease after each renewal.", rich_help_panel=ADVANCED)
    ] = 15.0,
    gang_limit: Annotated[
        float, typer.Option(min=0.1, help="Timeout (s) for binding all pods of a gang.", rich_help_panel=ADVANCED)
    ] = 60.0,
    attach_timeout: Annotated[
        float, typer.Option(min=0.1, help="Timeout (s) for device binding conditions.", rich_help_panel=ADVANCED)
    ] = 600.0,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address for --port.", rich_help_panel=SERVICE)] = "127.0.0.1",
) -> None:
    """Schedule the pods of a Kubernetes cluster.

    Runs until SIGTERM or Ctrl-C; a later run or another replica resumes where this one stopped.
    """
    require_packages("kubernetes", "aiohttp", "cel", "msgspec", "yaml")
    from prometheus_client import CollectorRegistry

    from poolwise.live.endpoints import serve_endpoints
    from poolwise.live.kubernetes.access import Access
    from poolwise.live.kubernetes.actions import Actions, ClusterActions
    from poolwise.live.kubernetes.lease import Leadership
    from poolwise.live.kubernetes.machine import read_layout
    from poolwise.live.kubernetes.metrics import KubernetesMetrics
    from poolwise.live.kubernetes.platform import KubernetesPlatform, ShadowKubernetes
    from poolwise.live.kubernetes.watch_client import WatchClient
    from poolwise.live.logs import log_to

    layout, policy = read_layout(machine), named_scheduler(options.scheduler)
    shadow = mode is KubernetesMode.SHADOW
    access = Access.discover(kubeconfig)
    named = _namespace_and_name(lease) if lease is not None else (access.namespace, name)
    leadership = None if shadow or named is None else Leadership(*named, lease_seconds)
    log_to()
    link = WatchClient(access, leadership=leadership, attach_timeout=attach_timeout)
    try:
        if leadership is not None and options.port is not None:
            with serve_endpoints(CollectorRegistry(), lambda: "another replica leads", options.port, host):
                link.open()
        else:
            link.open()
        writes, metrics = Actions() if shadow else ClusterActions(link, name), KubernetesMetrics()

        def make(continued: Continuation | None) -> KubernetesPlatform:
            platform = ShadowKubernetes if shadow else KubernetesPlatform
            return platform(link, name, policy, writes, layout, continued=continued, gang_limit=gang_limit, metrics=metrics)

        run_live(options, "shadow" if shadow else "live", make, host=host, register=metrics.register, explain_all=not shadow)
    finally:
        link.close()


def _namespace_and_name(lease: str) -> tuple[str, str] | None:
    """Return the namespace and name of a lease, or None for "none"."""
    if lease == "none":
        return None
    namespace, _, name = lease.partition("/")
    if not namespace or not name:
        raise InputError(f"'{lease}' is not a valid lease", field="--lease", remedy="write NAMESPACE/NAME, or none")
    return namespace, name
