"""Options that several commands share: output of a run, seeds and settings."""

from __future__ import annotations

from typing import Annotated

import typer

from poolwise.cli.panels import ADVANCED, COMMON

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.", rich_help_panel=COMMON)]
SeedOption = Annotated[int, typer.Option(min=0, help="Random seed.", rich_help_panel=COMMON)]
SettingsOption = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value, such as workload.jobs=100; a bare KEY sets the placement. Repeatable.",
        rich_help_panel=ADVANCED,
    ),
]
SampleOption = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="TIME",
        help="Sampling interval for the utilization of processing units in --json, such as 10us.",
        rich_help_panel=ADVANCED,
    ),
]
