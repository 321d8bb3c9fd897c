"""The options of every command that runs many cells: where they are computed."""

from __future__ import annotations

from typing import Annotated

import typer

ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor", help="Where cells are computed: local (this computer), dask or ray. Results do not depend on it."
    ),
]
ExecutorAddress = Annotated[
    str | None,
    typer.Option("--executor-address", envvar="POOLWISE_EXECUTOR_ADDRESS", help="Where the dask or ray cluster is."),
]
