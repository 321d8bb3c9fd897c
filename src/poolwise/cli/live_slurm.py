"""`poolwise live slurm`: schedule a partition of a Slurm cluster, set its priorities, or observe it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from poolwise.cli.console import print_line
from poolwise.cli.examples import command
from poolwise.cli.live import LiveOptions, live_app, named_scheduler, require_packages, run_live
from poolwise.cli.panels import ADVANCED
from poolwise.cli.shared_options import PartitionOption
from poolwise.errors import InputError
from poolwise.quantities import format_count, parse

if TYPE_CHECKING:
    from poolwise.live.slurm.platform import SlurmPlatform, SlurmSettings
    from poolwise.model import Continuation


class SlurmMode(StrEnum):
    """Uses of the scheduler's decisions."""

    SHADOW = "shadow"
    ORDER = "order"
    PLACE = "place"


class NodeSharing(StrEnum):
    """Node allocation: as the partition is configured, whole nodes, or shared nodes."""

    AUTO = "auto"
    WHOLE = "whole"
    SHARED = "shared"


@command(live_app, "poolwise live slurm --scheduler catalog:fm-easy --record shadow.jsonl")
def slurm(
    options: LiveOptions,
    mode: Annotated[
        SlurmMode, typer.Option(help="shadow changes nothing; order sets priorities; place decides when and where jobs start.")
    ] = SlurmMode.SHADOW,
    partition: PartitionOption = None,
    nodes: Annotated[
        NodeSharing,
        typer.Option(
            help="Allocate whole or shared nodes; auto: whole if the partition has OverSubscribe=EXCLUSIVE.",
            rich_help_panel=ADVANCED,
        ),
    ] = NodeSharing.AUTO,
    pool_unit: Annotated[
        str, typer.Option(metavar="AMOUNT", help="Memory per license of pool_RACK.", rich_help_panel=ADVANCED)
    ] = "1 GiB",
    interval: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two polls of Slurm.", rich_help_panel=ADVANCED)
    ] = 1.0,
    limit: Annotated[
        float,
        typer.Option(min=0.0, help="place: hours after which an unplaced job is released to Slurm.", rich_help_panel=ADVANCED),
    ] = 168.0,
    release: Annotated[
        bool,
        typer.Option("--release", help="Release all jobs that place mode holds to Slurm, and exit.", rich_help_panel=ADVANCED),
    ] = False,
) -> None:
    """Run a scheduler on a partition of a Slurm cluster.

    Runs until SIGTERM or Ctrl-C; with --state, a later run resumes where this one stopped. No other partition is changed.
    """
    from poolwise.live.slurm.client_calls import retry_until_available
    from poolwise.live.slurm.order_mode import Ranking

    require_packages("slurm")
    try:
        unit = max(parse(pool_unit, "memory"), 1)
    except ValueError as error:
        raise InputError(str(error), field="--pool-unit", remedy="such as '1 GiB'") from None
    if release:
        _release(_settings(partition, nodes, unit, interval))
        return
    ranking = Ranking.of(named_scheduler(options.scheduler)) if mode is SlurmMode.ORDER else None

    def make(continued: Continuation | None) -> SlurmPlatform:
        return retry_until_available(lambda: _platform(mode, _settings(partition, nodes, unit, interval), continued, limit))

    run_live(options, mode.value, make, ranking)


def _settings(partition: str | None, nodes: NodeSharing, unit: int, interval: float) -> SlurmSettings:
    """Return the settings; those that the options do not give are read from Slurm."""
    from poolwise.live.slurm.parsing import default_partition, is_exclusive
    from poolwise.live.slurm.platform import SlurmSettings

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


def _release(settings: SlurmSettings) -> None:
    from poolwise.live.logs import log_to
    from poolwise.live.slurm.place_mode import PlacePlatform

    log_to()
    platform = PlacePlatform(settings)
    count = platform.give_back_all()
    platform.close()
    verb = "was" if count == 1 else "were"
    print_line(f"{format_count(count, 'job')} of partition '{settings.partition}' {verb} released to Slurm")
