"""Amounts that runs hold at any time, recomputed from the record of a schedule."""

from __future__ import annotations

import numpy as np

from poolwise.model import Schedule


def check_capacity(schedule: Schedule) -> None:
    """Nothing is given twice: at no time do all runs together hold more than the machine has."""
    machine, rows = schedule.machine, schedule.holdings
    for time in sorted({*rows.begin.tolist(), *rows.end.tolist()}):
        here = (rows.begin <= time) & (rows.end > time)
        held = np.zeros_like(machine.capacity)
        np.add.at(held, (rows.owner[here], rows.resource[here]), rows.amount[here])
        assert (held <= machine.capacity).all()
