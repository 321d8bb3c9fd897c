"""`poolwise snapshot`: save the current state of a cluster to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poolwise.cli.app import app
from poolwise.cli.console import print_line
from poolwise.cli.examples import command
from poolwise.cli.live_cluster import ClusterName, KubeconfigOption, read_cluster_state
from poolwise.cli.shared_options import ClusterSchedulerOption, PartitionOption

snapshot_app = typer.Typer(
    help="Save the current state of a cluster to a folder.\n\n`simulate snapshot`, `forecast state` and `run` read the folder.",
    no_args_is_help=True,
)

OutOption = Annotated[Path, typer.Option(metavar="DIR", help="Folder to write; it is written completely or not at all.")]


@command(snapshot_app, "poolwise snapshot slurm --out now")
def slurm(out: OutOption, partition: PartitionOption = None, scheduler: ClusterSchedulerOption = "") -> None:
    """Save the state of a Slurm partition: nodes, running and waiting jobs."""
    save_snapshot(ClusterName.SLURM, partition, scheduler, out)


@command(snapshot_app, "poolwise snapshot kubernetes --out now")
def kubernetes(
    out: OutOption,
    name: Annotated[
        str,
        typer.Option(metavar="NAME", help="schedulerName of the pods that count as jobs; other pods only occupy resources."),
    ] = "poolwise",
    scheduler: ClusterSchedulerOption = "",
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Save the state of a Kubernetes cluster: nodes, devices and pods."""
    save_snapshot(ClusterName.KUBERNETES, name, scheduler, out, kubeconfig)


def save_snapshot(cluster: ClusterName, part: str | None, scheduler: str, out: Path, kubeconfig: Path | None = None) -> None:
    """Read a cluster once and write its state to a folder."""
    from poolwise.files.state import write_state
    from poolwise.files.state_study import study_of

    state = read_cluster_state(cluster, part, scheduler, kubeconfig)
    write_state(state, out, study_of(state, out))
    print_line(f"{out}: {len(state.running):,} running and {len(state.waiting):,} waiting jobs")


app.add_typer(snapshot_app, name="snapshot")
