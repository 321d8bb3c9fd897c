"""`poolwise trace generate`: generate a job table from a workload model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poolwise.atomic_write import check_writable
from poolwise.cli.console import progress, warn
from poolwise.cli.examples import examples
from poolwise.cli.output import provenance, write_provenance
from poolwise.cli.shared_options import setting
from poolwise.cli.trace import commands
from poolwise.quantities import format_count, format_memory, format_time

if TYPE_CHECKING:
    from poolwise.model import Workload


@commands.command(epilog=examples("poolwise trace generate lublin --jobs 1000 --out jobs.parquet"))
def generate(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Workload model: a name from `poolwise list generators`, FILE.py:NAME or MODULE:NAME."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Job table to write: .parquet, .csv or .csv.gz.")],
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of jobs.")] = None,
    set_: list[Any] = setting("Setting of the model; repeatable."),
) -> None:
    """Generate a job table from a workload model.

    Prints a summary on stderr.
    """
    from poolwise.traces import write_table
    from poolwise.traces.generators import configure

    check_writable(out)
    options: dict[str, Any] = {"seed": seed, "jobs": jobs}
    settings = {key: value for key, value in options.items() if value is not None}
    settings |= dict(set_)
    generator = configure(name, **settings)
    workload = generator.generate()
    write_table(workload, out)
    write_provenance(out, provenance(getattr(generator, "seed", None), []))
    _print_summary(workload, generator.nodes, out)


def _print_summary(workload: Workload, nodes: int, path: Path) -> None:
    """Print a summary on stderr; the result is the file."""
    from poolwise.model import Machine
    from poolwise.traces import info

    content = info(workload, Machine.of_racks(1, nodes))
    load = "" if content["load"] is None else f", load {content['load']:.3g} on {format_count(nodes, 'node')}"
    lines = [
        f"{path}: {format_count(len(workload), 'job')} over {format_time(content['span_s'])}{load}",
        f"node-seconds per job: {content['node_seconds'] / len(workload):,.0f}",
    ]
    for quantity, write in (("nodes", "{:,.0f}".format), ("runtime_s", format_time), ("memory_mib", format_memory)):
        values = ", ".join(f"{share} {write(value)}" for share, value in content[quantity].items())
        if values:
            lines.append(f"{quantity.partition('_')[0]}: {values}")
    if int(workload.memory.sum()):
        mean = float((workload.memory * workload.node_seconds).sum() / workload.node_seconds.sum())
        lines.append(f"mean memory per node, weighted by node-seconds: {format_memory(mean)}")
    for line in lines:
        progress(line)
    for reason, count in workload.repaired.items():
        warn(f"repaired {format_count(count, 'job')}: {reason}")
