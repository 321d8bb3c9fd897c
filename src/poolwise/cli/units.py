"""Processing units in `poolwise simulate --json`: utilization of each unit, and its time series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poolwise.units import US

if TYPE_CHECKING:
    from poolwise.model import Schedule


def unit_tables(schedule: Schedule, sample: int | None) -> dict[str, Any]:
    """Return the JSON keys of processing units: "units", and "series" with one value per `sample` ns."""
    from poolwise.metrics import Outcomes, Window
    from poolwise.metrics.unit_use import unit_series, unit_use, units_of

    machine = schedule.machine
    if not len(units_of(machine)):
        return {}
    window = Window.whole(Outcomes.of(schedule))
    use = unit_use(schedule, window)
    content: dict[str, Any] = {
        "units": [
            {
                "unit": machine.owners[unit],
                "type": kind,
                "x": int(machine.position[unit, 0]),
                "y": int(machine.position[unit, 1]),
                "utilization": None if share != share else share,
            }
            for unit, kind, share in zip(use.unit.tolist(), use.type, use.utilization.tolist(), strict=True)
        ]
    }
    if sample is not None:
        series = unit_series(schedule, window, sample)
        content["series"] = {
            "interval_us": sample / US,
            "begin_us": (series.begin / US).tolist(),
            "overall": series.overall.tolist(),
            "by_type": {name: column.tolist() for name, column in series.by_type.items()},
        }
    return content
