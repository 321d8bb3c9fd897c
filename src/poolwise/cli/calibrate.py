"""`poolwise calibrate`: generate the workloads of a mix at a given load."""

from __future__ import annotations

from pathlib import Path

import typer

from poolwise.atomic_write import check_writable
from poolwise.cli.app import app
from poolwise.cli.console import print_line
from poolwise.cli.examples import command
from poolwise.errors import InfeasibleError, InputError


@command(app, "poolwise calibrate nvme-high-bandwidth --machine nvme-pooled --load 0.7")
def calibrate(
    mix: Path = typer.Argument(metavar="MIX", help="MIX.toml, or the name of a shipped mix such as nvme-high-bandwidth."),
    machine: Path = typer.Option(..., metavar="MACHINE", help="MACHINE.toml, or the name of a shipped machine."),
    load: float = typer.Option(..., help="Target load: mean fraction of busy cores on the ideal machine, such as 0.7."),
    seed: int = typer.Option(0, min=0, help="Random seed."),
    out: Path | None = typer.Option(
        None, metavar="FILE", help="Write the workloads as a job table: .parquet, .csv or .csv.gz."
    ),
) -> None:
    """Generate workloads of a mix that produce a given load.

    Searches for the mean gap between arrivals. The ideal machine has all cores in one node. Exits with 3 if no gap reaches the
    load within 0.005.
    """
    from poolwise import catalog, traces
    from poolwise.calibration import TOLERANCE
    from poolwise.calibration import calibrate as search
    from poolwise.files.machine import load_machine
    from poolwise.files.mix import load_mix

    if not 0 < load < 1:
        raise InputError(f"a load of {load:g} cannot be reached", field="load", remedy="give a number between 0 and 1")
    if out is not None:
        check_writable(out)
    shipped = [path if path.suffix else catalog.find(kind, str(path)) for path, kind in ((mix, "mixes"), (machine, "machines"))]
    file, _ = load_mix(shipped[0])
    calibrated = search(file.mix(seed), load_machine(shipped[1]), load)
    window = "" if calibrated.ideal.opened else " over the whole run, since it never reached 0.7"
    ideal = f"ideal load {calibrated.ideal.load:.4f}{window}, {calibrated.runs} ideal runs"
    line = f"mean gap {calibrated.mix.mean_gap_s:.6g} s: {ideal}"
    if not calibrated.reached:
        raise InfeasibleError(f"no mean gap gives a load within {TOLERANCE} of {load:g}; the closest result: {line}")
    print_line(line)
    if out is not None:
        traces.write_table(calibrated.mix.generate(), out)
