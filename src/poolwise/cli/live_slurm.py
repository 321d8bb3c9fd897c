"""`poolwise live slurm`: schedule a partition of a Slurm cluster, set its priorities, or watch."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from poolwise.cli.examples import examples
from poolwise.cli.live import LiveOptions, live_app, named_scheduler, needs, run_live

if TYPE_CHECKING:
    from poolwise.live.slurm.platform import SlurmPlatform
    from poolwise.live.slurm.poller import SlurmSettings
    from poolwise.model import Continuation


class SlurmMode(StrEnum):
    """What becomes of decisions."""

    SHADOW = "shadow"
    ORDER = "order"
    PLACE = "place"


class NodeSharing(StrEnum):
    """Whether jobs take whole nodes."""

    AUTO = "auto"
    WHOLE = "whole"
    SHARED = "shared"


def slurm(
    mode: SlurmMode = typer.Option(
        SlurmMode.SHADOW, help="shadow: change nothing; order: set priorities; place: decide when and where jobs start."
    ),
    scheduler: str = typer.Option(help="SCHEDULER.toml, or catalog:NAME (`poolwise list schedulers`)."),
    partition: str | None = typer.Option(None, help="The partition; the cluster's default if not given. No other is touched."),
    nodes: NodeSharing = typer.Option(
        NodeSharing.AUTO, help="auto: jobs take whole nodes where the partition says OverSubscribe=EXCLUSIVE."
    ),
    pool_unit: str = typer.Option("1 GiB", help="Memory that one licence of pool_RACK stands for."),
    interval: float = typer.Option(1.0, min=0.05, help="Seconds between readings."),
    limit: float = typer.Option(
        168.0, min=0.0, help="place: hours after which a job that could not be placed is given back to Slurm."
    ),
    give_back: bool = typer.Option(False, "--give-back", help="Give back to Slurm all jobs that place mode holds, and end."),
    state: Path | None = typer.Option(None, help="Folder for what the next run needs to go on (priorities that count passes)."),
    record: Path | None = typer.Option(None, help="Append decisions and what happened to a file, for `poolwise compare`."),
    port: int | None = typer.Option(
        None, min=0, max=65535, help="Serve /metrics, /healthz and /readyz on this port of the host."
    ),
    seed: int = typer.Option(0, min=0, help="Seed of all that is drawn."),
    seconds: float | None = typer.Option(None, min=0.0, help="End after so many seconds; else run until stopped."),
) -> None:
    """Run a scheduler on a partition of Slurm until SIGTERM or Ctrl-C; a later run goes on where this one ended."""
    from poolwise.errors import InputError
    from poolwise.live.slurm.client_calls import retry_until_available
    from poolwise.live.slurm.order_mode import Ranking
    from poolwise.units import parse

    needs("slurm")
    try:
        unit = max(parse(pool_unit, "memory"), 1)
    except ValueError as error:
        raise InputError(str(error), field="--pool-unit", remedy="such as '1 GiB'") from None
    if give_back:
        _give_back(_settings(partition, nodes, unit, interval))
        return
    options = LiveOptions(scheduler, mode.value, seed, state, record, port, seconds)
    ranking = Ranking.of(named_scheduler(scheduler)) if mode is SlurmMode.ORDER else None

    def make(continued: Continuation | None) -> SlurmPlatform:
        return retry_until_available(lambda: _platform(mode, _settings(partition, nodes, unit, interval), continued, limit))

    run_live(options, make, ranking)


def _settings(partition: str | None, nodes: NodeSharing, unit: int, interval: float) -> SlurmSettings:
    """Ask Slurm for what the options leave open."""
    from poolwise.live.slurm.parsing import default_partition, is_exclusive
    from poolwise.live.slurm.poller import SlurmSettings

    name = partition if partition is not None else default_partition()
    whole = is_exclusive(name) if nodes is NodeSharing.AUTO else nodes is NodeSharing.WHOLE
    return SlurmSettings(name, whole, unit, interval)


def _platform(mode: SlurmMode, settings: SlurmSettings, continued: Continuation | None, limit: float) -> SlurmPlatform:
    from poolwise.live.slurm.order_mode import OrderPlatform
    from poolwise.live.slurm.place_mode import PlacePlatform
    from poolwise.live.slurm.shadow_mode import ShadowPlatform

    match mode:
        case SlurmMode.SHADOW:
            return ShadowPlatform(settings, continued)
        case SlurmMode.ORDER:
            return OrderPlatform(settings, continued)
        case SlurmMode.PLACE:
            return PlacePlatform(settings, continued, limit=limit * 3600)


def _give_back(settings: SlurmSettings) -> None:
    from poolwise.cli.output import print_sentences
    from poolwise.live.logs import log_to
    from poolwise.live.slurm.place_mode import PlacePlatform

    log_to()
    platform = PlacePlatform(settings)
    count = platform.give_back_all("place mode was ended")
    platform.close()
    print_sentences([f"{count:,} jobs of partition '{settings.partition}' were given back to Slurm"])


def register(app: typer.Typer) -> None:
    """Add the command."""
    live_app.command("slurm", epilog=examples("poolwise live slurm --scheduler catalog:fm-easy --record shadow.jsonl"))(slurm)
