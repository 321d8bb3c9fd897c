"""Options that choose where a study, plan, search or reproduction is computed."""

from __future__ import annotations

from typing import Annotated

import typer

ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor", metavar="NAME", help="Where to compute: local (this computer), dask or ray. Results are the same."
    ),
]
ExecutorAddress = Annotated[
    str | None,
    typer.Option(
        "--executor-address", metavar="ADDRESS", envvar="POOLWISE_EXECUTOR_ADDRESS", help="Address of the Dask or Ray cluster."
    ),
]
