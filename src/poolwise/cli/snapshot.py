"""`poolwise snapshot`: a cluster at this instant, as a state directory."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.cli.examples import examples
from poolwise.cli.live_cluster import ClusterName, see

snapshot_app = typer.Typer(help="Write a cluster at this instant as a folder that other commands take.", no_args_is_help=True)


def slurm(
    out: Path = typer.Option(help="The folder; it appears whole, or not at all."),
    partition: str | None = typer.Option(None, help="The partition; the cluster's default if not given."),
    scheduler: str = typer.Option("", help="What decides there, if known: SCHEDULER.toml or catalog:NAME."),
) -> None:
    """Write a partition of a Slurm cluster: what it has, what runs where since when, and what waits."""
    write_seen(ClusterName.SLURM, partition, scheduler, out)


def kubernetes(
    out: Path = typer.Option(help="The folder; it appears whole, or not at all."),
    name: str = typer.Option("poolwise", help="Pods with this schedulerName are jobs; others take room."),
    scheduler: str = typer.Option("", help="What decides there, if known: SCHEDULER.toml or catalog:NAME."),
) -> None:
    """Write the cluster that $KUBECONFIG names: what it has, what runs where since when, and what waits."""
    write_seen(ClusterName.KUBERNETES, name, scheduler, out)


def write_seen(cluster: ClusterName, partition: str | None, scheduler: str, out: Path) -> None:
    """Read a cluster once and write its state."""
    from poolwise.cli.output import print_sentences
    from poolwise.files.state import write_state
    from poolwise.files.state_study import study_of
    from poolwise.live.platform import LiveView

    state = LiveView.of(see(cluster, partition, scheduler)).state(f"{cluster.value} {partition or ''}".strip(), scheduler)
    write_state(state, out, study_of(state, out))
    print_sentences([f"{out}: {len(state.running):,} jobs run and {len(state.waiting):,} wait"])


def register(app: typer.Typer) -> None:
    """Add the commands."""
    snapshot_app.command("slurm", epilog=examples("poolwise snapshot slurm --out now"))(slurm)
    snapshot_app.command("kubernetes", epilog=examples("poolwise snapshot kubernetes --out now"))(kubernetes)
    app.add_typer(snapshot_app, name="snapshot")
