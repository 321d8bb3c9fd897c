"""What `poolwise simulate` prints of tasks on processing units."""

from __future__ import annotations

from typing import Any


def interval(text: str | None) -> int | None:
    """Ns of a sampling interval such as "10us" or "10" (us); None for -1 or no text. Raises InputError."""
    from poolwise.errors import InputError
    from poolwise.traces.vinesim import InterArrival

    if text is None or text.strip() == "-1":
        return None
    try:
        gap = InterArrival.parse(text)
    except InputError:
        gap = InterArrival("fixed", 0.0)
    if gap.distribution != "fixed" or gap.low < 1:
        raise InputError(f"'{text}' is not a sampling interval", field="--sample", remedy="write 10us, or -1 for none")
    return round(gap.low)


def print_summary(content: dict[str, Any], title: str) -> None:
    """Print the metrics of a run as a table."""
    from rich.table import Table

    from poolwise.cli.console import out

    table = Table(title=title, box=None, pad_edge=False, title_justify="left")
    for heading in ("", "mean", "median", "99 %", "99.9 %"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, words in (
        ("job_latency_us", "job latency, us"),
        ("task_latency_us", "task latency, us"),
        ("response_us", "transfer and computation, us"),
    ):
        table.add_row(words, *(_number(content[name][key]) for key in ("mean", "p50", "p99", "p99_9")))
    out.print(table)
    use = content["utilization"]
    types = ", ".join(f"{name} {_number(value)}" for name, value in use["by_type"].items())
    lines = [
        f"{content['jobs']:,} jobs of {content['tasks']:,} tasks in {_number(content['makespan_us'])} us",
        f"utilisation {_number(use['overall'])} ({types})",
    ]
    if content["purchase_cost"] is not None:
        lines.append(f"cost of purchase {_number(content['purchase_cost'])}")
    if content["energy_j"] is not None:
        lines.append(f"energy {_number(content['energy_j'])} J")
    lines.append(f"simulated by the {content['engine']} engine in {content['wall_s']:.3g} s")
    for line in lines:
        out.print(line, highlight=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.6g}"
