"""Processing units in `poolwise simulate --json`: utilization of each unit, and its time series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolwise.model import Machine, Schedule


def interval(text: str | None) -> int | None:
    """Return the ns of a sampling interval such as "10us" or "10" (us); None for -1 or no text. Raises InputError."""
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


def check_sample(machine: Machine, sample: int | None) -> None:
    """Raise InputError if a sampling interval is given for a machine without processing units."""
    from poolwise.errors import InputError
    from poolwise.metrics.unit_use import units_of

    if sample is not None and not len(units_of(machine)):
        remedy = "leave it out, or simulate processing units"
        raise InputError("the machine has no processing units to sample", field="--sample", remedy=remedy)


def unit_tables(schedule: Schedule, sample: int | None) -> dict[str, Any]:
    """Return the JSON keys of processing units: "units", and "series" with one value per `sample` ns."""
    from poolwise.metrics import Outcomes, Window
    from poolwise.metrics.unit_use import unit_series, unit_use, units_of
    from poolwise.units import US

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
