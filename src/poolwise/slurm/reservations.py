"""Reservations of a Slurm cluster, as `scontrol show reservation` lists them.

Source: scontrol(1) of Slurm 23.02, "RESERVATIONS".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from poolwise.errors import InputError
from poolwise.slurm import hostlist
from poolwise.slurm.cluster import pairs

REMEDY: Final = "write it with `scontrol --oneliner show reservation`"
REPEATS: Final = {
    "HOURLY": timedelta(hours=1),
    "DAILY": timedelta(days=1),
    "WEEKDAY": timedelta(days=1),
    "WEEKEND": timedelta(days=1),
    "WEEKLY": timedelta(weeks=1),
}
"""Flag of repeating reservations -> time between two occurrences."""
HARMLESS: Final = (
    "MAINT", "SPEC_NODES", "OVERLAP", "IGNORE_JOBS", "ALL_NODES", "PART_NODES", "NO_HOLD_JOBS_AFTER_END", "PURGE_COMP",
    "STATIC", "STATIC_ALLOC", "FORCE_START", "NO_HOLD_JOBS", "MAGNETIC",
)  # fmt: skip
"""Flags that a reserved window represents, or that do not matter for it."""
MOST_REPEATS: Final = 1000
_NONE = ("", "(null)", "N/A", "n/a", "NONE")


@dataclass(frozen=True)
class SlurmReservation:
    """A reservation: its line, local times, nodes, and the users and accounts that may use it.

    `problem` states why reserved windows cannot represent it; empty if they can.
    """

    name: str
    line: int
    start: datetime
    end: datetime
    nodes: tuple[str, ...]
    users: tuple[str, ...]
    accounts: tuple[str, ...]
    flags: tuple[str, ...]
    problem: str

    def occurrences(self, first: datetime, last: datetime) -> list[tuple[datetime, datetime]]:
        """Return the start and end of each occurrence that overlaps a period.

        Occurrences of a repeated reservation may also precede it.
        """
        step = next((REPEATS[flag] for flag in self.flags if flag in REPEATS), None)
        if step is None:
            return [(self.start, self.end)] if self.end > first and self.start <= last else []
        length, periods = self.end - self.start, list[tuple[datetime, datetime]]()
        start = self.start + (first - length - self.start) // step * step
        while start <= last and len(periods) <= MOST_REPEATS:
            weekend = start.weekday() >= 5
            if start + length > first and not (
                ("WEEKDAY" in self.flags and weekend) or ("WEEKEND" in self.flags and not weekend)
            ):
                periods.append((start, start + length))
            start += step
        return periods


def read_reservations(path: Path) -> list[SlurmReservation]:
    """Read the reservations, in one or several lines each; raises InputError with file, line and field."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy=REMEDY) from None
    records: list[tuple[int, dict[str, str]]] = []
    for number, text in enumerate(lines, start=1):
        values = pairs(text)
        if "ReservationName" in values:
            records.append((number, {}))
        elif text.strip() and not records and not text.startswith("No reservations"):
            raise InputError("the first line names no reservation", file=path, line=number, remedy=REMEDY)
        if records:
            cores = {"CoreIDs": values.pop("CoreIDs")} if "CoreIDs" in values else {}
            records[-1][1].update({**values, **cores})
    return [_reservation(path, line, values) for line, values in records]


def _reservation(path: Path, line: int, values: dict[str, str]) -> SlurmReservation:
    def time(field: str) -> datetime:
        try:
            return datetime.fromisoformat(values.get(field, ""))
        except ValueError:
            problem = f"'{values.get(field, '')}' is not a time"
            raise InputError(problem, file=path, line=line, field=field, remedy="write 2026-03-01T12:00:00") from None

    def words(field: str) -> tuple[str, ...]:
        text = values.get(field, "")
        return () if text in _NONE else tuple(text.split(","))

    try:
        nodes = () if values.get("Nodes", "") in _NONE else tuple(hostlist.expand(values["Nodes"]))
    except ValueError as error:
        raise InputError(str(error), file=path, line=line, field="Nodes", remedy=REMEDY) from None
    flags = tuple(flag.partition("=")[0] for flag in words("Flags"))
    users, accounts = words("Users"), words("Accounts")
    problem = ""
    if not nodes:
        problem = "it reserves no nodes"
    elif "CoreIDs" in values:
        problem = "it reserves some cores of a node, but windows reserve whole nodes"
    elif "TIME_FLOAT" in flags:
        problem = "its start moves with the current time (TIME_FLOAT)"
    elif words("Groups"):
        problem = "it is for groups, but the log has only users and accounts"
    elif any(name.startswith("-") for name in (*users, *accounts)):
        problem = "it excludes users or accounts, but windows list those that are allowed"
    return SlurmReservation(
        values["ReservationName"], line, time("StartTime"), time("EndTime"), nodes, users, accounts, flags, problem
    )
