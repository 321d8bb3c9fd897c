"""Options that several commands share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.cli.panels import ADVANCED, LOG
from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.runner import Executor

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Random seed.")]


def _parse(text: str) -> Any:
    from poolwise.studies.study import parse_setting

    return parse_setting(text)


def _parse_only(text: str) -> tuple[str, str | list[str]]:
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise InputError(f"'{text}' is not KEY=VALUE", field="--only", remedy="write, for example, --only partition=batch,gpu")
    return name, values if name in ("from", "to") else values.split(",")


def setting(help: str) -> Any:
    """Return the repeatable option --set KEY=VALUE, whose value is a list of (key, value) pairs, as a parameter's default."""
    return typer.Option([], "--set", metavar="KEY=VALUE", help=help, parser=_parse)


SettingsOption = Annotated[
    list[Any],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value, such as workload.jobs=100; a bare KEY sets the placement. Repeatable.",
        rich_help_panel=ADVANCED,
        parser=_parse,
    ),
]


OnlyOption = Annotated[
    list[Any],
    typer.Option(
        "--only",
        metavar="KEY=VALUE,...",
        help="Keep only jobs with this partition, user, account, state, ..., or submitted from=DATE or to=DATE. Repeatable.",
        rich_help_panel=LOG,
        parser=_parse_only,
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Stop at the first row that cannot be read.", rich_help_panel=LOG)]
LogArgument = Annotated[
    Path, typer.Argument(metavar="LOG", help="SWF, sacct or any table (CSV, Parquet; plain or .gz), or catalog:NAME.")
]


PartitionOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Partition; defaults to the cluster's default partition.")
]
PodSchedulerOption = Annotated[str, typer.Option(metavar="NAME", help="schedulerName of the pods to consider.")]
ClusterSchedulerOption = Annotated[
    str, typer.Option(metavar="FILE", help="Scheduler of the cluster: SCHEDULER.toml or catalog:NAME.")
]


@dataclass(frozen=True)
class ComputeOptions:
    """Processes of this computer, or a cluster."""

    jobs: Annotated[int | None, typer.Option(min=1, help="Number of processes; defaults to all cores.")] = None
    executor: Annotated[
        str, typer.Option(metavar="NAME", help="Where to compute: local (this computer) or dask. Results are the same.")
    ] = "local"
    executor_address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", envvar="POOLWISE_EXECUTOR_ADDRESS", help="Address of the Dask cluster."),
    ] = None

    def workers(self) -> AbstractContextManager[Executor]:
        """Start the executor, as a context."""
        from poolwise.runner import find_executor

        return find_executor(self.executor, self.executor_address, self.jobs)
