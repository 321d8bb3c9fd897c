"""Drawing of the machine: racks as columns, with the used, unreachable and free share of nodes, memory, pools and devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poolwise.metrics import Window
from poolwise.metrics.owner_average import OwnerAverage, owner_averages
from poolwise.model import Kind, Schedule
from poolwise.presentation.figure import Axis, Box, Boxes
from poolwise.presentation.format import format_number
from poolwise.report.gantt import resource_amount
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.cell_simulation import simulate_again

MAX_OWNERS = 4000
"""Maximum number of owners of a machine that is drawn."""
_SERIES = ("used", "out of reach", "free")
_NO_LINKS = " Links are not drawn, because a schedule does not record the data that passes over them."
_RANK = {Kind.NODE: 0, Kind.DEVICE: 1, Kind.POOL: 2, Kind.LINK: 3}


def machine_of_run(result: StudyResult, cell: CellResult, where: str) -> Boxes | None:
    """Draw the machine of a run; None if simulating the run again would take long, or the machine is too large."""
    run = result.simulated(cell)
    if cell.engine != "compiled" or run.machine.n_owner > MAX_OWNERS:
        return None
    system = run.scheduler.scope == "system"
    return machine_of_schedule(simulate_again(run, result.outcomes(cell)), result.window(cell), where, system=system)


def machine_of_schedule(schedule: Schedule, window: Window, where: str = "", *, system: bool = False) -> Boxes:
    """Draw each rack as a column and each kind of part as a row, with its average use over a window."""
    machine = schedule.machine
    parts: dict[tuple[int, str, str], list[OwnerAverage]] = {}
    for mean in owner_averages(schedule, window, system=system):
        parts.setdefault((_RANK[Kind(machine.kind[mean.owner])], machine.type[mean.owner], mean.resource), []).append(mean)
    idle_links = [row for row, owners in parts.items() if row[0] == _RANK[Kind.LINK] and not any(mean.used for mean in owners)]
    for row in idle_links:  # a schedule does not record traffic over links, so drawing them as free would be wrong
        del parts[row]
    racks = sorted({int(rack) for rack in machine.rack.tolist() if rack >= 0})
    rows = sorted(parts, reverse=True)
    boxes = []
    for k, row in enumerate(rows):
        for rack in sorted({int(machine.rack[mean.owner]) for mean in parts[row]}):
            here = [mean for mean in parts[row] if machine.rack[mean.owner] == rack]
            at = racks.index(rack) if rack >= 0 else 0
            across = (at + 0.04, at + 0.96) if rack >= 0 else (0.04, len(racks) - 0.04)
            name = f"{_label(row)}{f' in rack {rack}' if rack >= 0 else ' of the machine'}"
            boxes += _bar(here, across, k, name, row[2])
    ticks = {k + 0.5: _label(row) for k, row in enumerate(rows)}
    return Boxes(
        "machine",
        f"Use of the machine{where}",
        "Columns are racks and rows are kinds of parts, filled from the left by their average use over the measured time. "
        "Parts out of reach are free but cannot be used: memory and devices of nodes without a free node or core, and pools "
        f"while no node or core in {'the machine' if system else 'their rack'} is free." + (_NO_LINKS if idle_links else ""),
        boxes=boxes,
        series=_SERIES,
        pale=("free",),
        x_axis=Axis(
            "rack", ticks={at + 0.5: str(rack) for at, rack in enumerate(racks)}, limits=(0.0, float(max(1, len(racks))))
        ),
        y_axis=Axis("", ticks=ticks),
    )


def _bar(here: Sequence[OwnerAverage], across: tuple[float, float], k: int, name: str, resource: str) -> list[Box]:
    """Return the parts of one kind in one rack as a bar of three boxes: used, out of reach, free."""
    installed = np.array([mean.installed for mean in here], dtype=np.float64)
    total = float(installed.sum())
    used, beyond = (
        float((installed * share).sum()) / total for share in ([o.used for o in here], [o.unreachable for o in here])
    )
    shares = dict(zip(_SERIES, (used, beyond, max(0.0, 1.0 - used - beyond)), strict=True))
    left, boxes = across[0], []
    for series, share in shares.items():
        right = left + share * (across[1] - across[0])
        text = f"{name}: {format_number(100 * share)} % {series} of {resource_amount(resource, total)}"
        if share > 0:
            boxes.append(Box(left, right, k + 0.12, k + 0.88, series, text))
        left = right
    return boxes


def _label(row: tuple[int, str, str]) -> str:
    _, kind, resource = row
    return resource if kind == resource else f"{kind}: {resource}"
