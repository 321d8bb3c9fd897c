"""`poolwise live kubernetes`: schedule the pods of a Kubernetes cluster, observe them, or check the cluster.

`poolwise live kubernetes OPTIONS` is short for `poolwise live kubernetes schedule OPTIONS`.
"""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poolwise.cli.console import print_lines
from poolwise.cli.default_group import DefaultGroup
from poolwise.cli.examples import command, examples
from poolwise.cli.live import LiveOptions, live_app, named_scheduler, require_packages, run_live
from poolwise.cli.live_cluster import KubeconfigOption
from poolwise.cli.output import print_json, provenance
from poolwise.cli.panels import ADVANCED, SERVICE
from poolwise.cli.shared_options import JsonOption
from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.live.kubernetes.platform import KubernetesPlatform
    from poolwise.model import Continuation


class KubernetesMode(StrEnum):
    """Modes of the scheduler."""

    SHADOW = "shadow"
    SCHEDULE = "schedule"


class _ScheduleByDefault(DefaultGroup):
    default = "schedule"


EXAMPLES = ("poolwise live kubernetes --scheduler catalog:fm-easy", "poolwise live kubernetes doctor")
kubernetes_app = typer.Typer(
    cls=_ScheduleByDefault,
    help="Schedule the pods of a Kubernetes cluster.\n\nWithout a command, run the scheduler.",
    epilog=examples(*EXAMPLES),
    no_args_is_help=True,
    subcommand_metavar="| COMMAND [ARGS]...",
)
live_app.add_typer(kubernetes_app, name="kubernetes")
NameOption = Annotated[str, typer.Option(metavar="NAME", help="Schedule only pods with this schedulerName.")]
LeaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE/NAME",
        help="Schedule only while holding this lease; 'none' disables it. Defaults to --name in the credentials' namespace.",
        rich_help_panel=ADVANCED,
    ),
]
ProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="NAME=FILE",
        help="Also schedule pods with this schedulerName, with another scheduler file. Repeat for more.",
        rich_help_panel=ADVANCED,
    ),
]
ModeOption = Annotated[
    KubernetesMode, typer.Option(help="shadow decides and records without changing the cluster; schedule binds pods.")
]


@command(kubernetes_app, "poolwise live kubernetes schedule --scheduler catalog:fm-easy")
def schedule(
    options: LiveOptions,
    kubeconfig: KubeconfigOption = None,
    name: NameOption = "poolwise",
    mode: ModeOption = KubernetesMode.SCHEDULE,
    profile: ProfileOption = None,
    machine: Annotated[
        Path | None,
        typer.Option(
            metavar="OVERLAY.toml",
            help="File with facts that the cluster's objects do not record: racks, whole nodes.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    lease: LeaseOption = None,
    lease_seconds: Annotated[
        float, typer.Option(min=1.0, help="Duration (s) of the lease after each renewal.", rich_help_panel=ADVANCED)
    ] = 15.0,
    gang_limit: Annotated[
        float, typer.Option(min=0.1, help="Timeout (s) for binding all pods of a gang.", rich_help_panel=ADVANCED)
    ] = 60.0,
    attach_timeout: Annotated[
        float, typer.Option(min=0.1, help="Timeout (s) for device binding conditions and volumes.", rich_help_panel=ADVANCED)
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
    from poolwise.live.kubernetes.profiles import ProfileScheduler
    from poolwise.live.kubernetes.watch_client import WatchClient
    from poolwise.live.logs import log_to

    profiles, layout = _profiles(name, options.scheduler, profile), read_layout(machine)
    schedulers = {name: named_scheduler(reference) for name, reference in profiles.items()}
    policy = ProfileScheduler(schedulers) if len(schedulers) > 1 else schedulers[name]
    shadow = mode is KubernetesMode.SHADOW
    access = Access.discover(kubeconfig)
    named = _lease(access.namespace, name, lease, shadow)
    leadership = None if named is None else Leadership(*named, lease_seconds)
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
            return platform(
                link,
                name,
                policy,
                writes,
                layout,
                continued=continued,
                gang_limit=gang_limit,
                metrics=metrics,
                profiles=profiles,
            )

        run_live(
            options,
            "shadow" if shadow else "live",
            make,
            named=policy,
            host=host,
            register=metrics.register,
            explain_all=not shadow,
        )
    finally:
        link.close()


@command(kubernetes_app, "poolwise live kubernetes doctor", "poolwise live kubernetes doctor --lease poolwise/poolwise --json")
def doctor(
    kubeconfig: KubeconfigOption = None,
    name: NameOption = "poolwise",
    mode: ModeOption = KubernetesMode.SCHEDULE,
    profile: ProfileOption = None,
    lease: LeaseOption = None,
    json: JsonOption = False,
) -> int:
    """Check a cluster for problems before a run: version, rights, APIs, device drivers, other schedulers, lease.

    Uses the credentials of the scheduler and changes nothing. Prints one line per check, with the remedy; exits with 1 if any
    check fails.
    """
    require_packages("kubernetes", "aiohttp", "cel", "msgspec", "yaml")
    import asyncio

    from poolwise.live.kubernetes.access import Access
    from poolwise.live.kubernetes.doctor import examine_cluster

    access, shadow = Access.discover(kubeconfig), mode is KubernetesMode.SHADOW
    named, names = _lease(access.namespace, name, lease, shadow), tuple(_profiles(name, "", profile))
    checks = asyncio.run(examine_cluster(access, names, named, shadow=shadow))
    failed = sum(check.status == "failed" for check in checks)
    if json:
        print_json({"failed": failed, "checks": [asdict(check) for check in checks]}, provenance(None, []))
    else:
        print_lines(map(str, checks))
    return 1 if failed else 0


def _profiles(name: str, scheduler: str, more: list[str] | None) -> dict[str, str]:
    """Return schedulerName -> scheduler file for all profiles; the profile of --name and --scheduler comes first."""
    profiles = {name: scheduler}
    for text in more or ():
        other, _, file = text.partition("=")
        if not other or not file:
            raise InputError(f"'{text}' is not a valid profile", field="--profile", remedy="write NAME=FILE")
        if other in profiles:
            raise InputError(
                f"schedulerName {other} has two scheduler files", field="--profile", remedy="give each schedulerName only once"
            )
        profiles[other] = file
    return profiles


def _lease(namespace: str, name: str, lease: str | None, shadow: bool) -> tuple[str, str] | None:
    """Return the namespace and name of the lease, by default the scheduler's lease; None in shadow mode."""
    return None if shadow else _namespace_and_name(lease) if lease is not None else (namespace, name)


def _namespace_and_name(lease: str) -> tuple[str, str] | None:
    """Return the namespace and name of a lease, or None for "none"."""
    if lease == "none":
        return None
    namespace, _, name = lease.partition("/")
    if not namespace or not name:
        raise InputError(f"'{lease}' is not a valid lease", field="--lease", remedy="write NAMESPACE/NAME, or none")
    return namespace, name
