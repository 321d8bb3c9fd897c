"""Options that describe a cluster: its part to observe, and its scheduler."""

from __future__ import annotations

from typing import Annotated

import typer

from poolwise.cli.panels import COMMON

PartitionOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Partition; defaults to the cluster's default partition.", rich_help_panel=COMMON),
]
PodSchedulerOption = Annotated[
    str, typer.Option(metavar="NAME", help="schedulerName of the pods to consider.", rich_help_panel=COMMON)
]
ClusterSchedulerOption = Annotated[
    str, typer.Option(metavar="FILE", help="Scheduler of the cluster: SCHEDULER.toml or catalog:NAME.", rich_help_panel=COMMON)
]
