"""`poolwise forecast state`: the waiting jobs of a state directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poolwise.cli.examples import command
from poolwise.cli.forecast import (
    AnswerOutput,
    LogFormat,
    PolicyOptions,
    QuestionOptions,
    forecast_waiting,
    forecasts,
    show_forecast,
)


@command(forecasts, "poolwise forecast state now --new nodes=2,memory=64GiB,time=4h")
def state(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="State directory, as `poolwise snapshot` writes it.")],
    question: QuestionOptions,
    policy: PolicyOptions,
    log: LogFormat,
    output: AnswerOutput,
) -> None:
    """Forecast the waiting jobs of a saved state."""
    from poolwise.files.state import FILES, read_state

    found = forecast_waiting(read_state(folder), question, policy, log)
    inputs = [folder / name for name in FILES if (folder / name).is_file()]
    show_forecast(found, output, question.seed, inputs)
