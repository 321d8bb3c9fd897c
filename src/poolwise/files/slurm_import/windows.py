"""Reserved windows of an imported Slurm cluster, from its reservations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from poolwise.files.slurm_import.cluster import SlurmCluster, toml
from poolwise.files.slurm_import.machine_file import racks_of
from poolwise.model import Workload
from poolwise.quantities import SECOND, format_count
from poolwise.slurm.reservations import HARMLESS, MOST_REPEATS, REPEATS, SlurmReservation, read_reservations

_FLAGS = {
    "FLEX": "jobs of its users do not start outside it and continue inside",
    "REPLACE": "its nodes stay the same",
    "REPLACE_DOWN": "its nodes stay the same",
}
"""Flag that a window does not represent -> behavior of the simulation instead."""

_BEHIND = timedelta(weeks=1)
"""Time after the last submission for which reservations still matter, since waiting jobs must not overlap them."""


def window_lines(cluster: SlurmCluster, dump: Path, jobs: Workload, local: tzinfo) -> list[str]:
    """Return the windows for machine.toml, with times relative to the log's first job; note omitted reservations."""
    owners, lines = _owners(cluster), list[str]()
    begins = jobs.epoch or 0
    first, last = (_local(begins + int(at), local) for at in (0, jobs.submit.max(initial=0)))
    last += _BEHIND
    for reservation in read_reservations(dump):
        place = f"{dump.name}:{reservation.line}"
        hosts = [host for host in reservation.nodes if host in owners]
        times = reservation.occurrences(first, last)
        problem = reservation.problem or _problem(hosts, times, first, reservation)
        if jobs.epoch is None:
            problem = "the log has no calendar times"
        if problem:
            cluster.leave_out(f"{place}: reservation {reservation.name} is left out: {problem}")
            continue
        _note_differences(cluster, place, reservation, len(hosts))
        for k, (start, end) in enumerate(times):
            since, until = (_ns(at, local) - begins for at in (start, end))
            name = re.sub(r"[^A-Za-z0-9_-]", "-", reservation.name) + (f"-{k + 1}" if len(times) > 1 else "")
            lines += [
                "",
                "[[window]]",
                f"name = {toml(name)}  # {place}: {start.isoformat()} to {end.isoformat()}",
                f'start = "{max(since, 0) // SECOND} s"  # from the first job of the log',
                f'end = "{until // SECOND} s"',
                f"nodes = {toml([owners[host] for host in hosts])}",
                *([f"users = {toml(list(reservation.users))}"] if reservation.users else []),
                *([f"accounts = {toml(list(reservation.accounts))}"] if reservation.accounts else []),
            ]
    return lines


def _problem(hosts: list[str], times: list[tuple[datetime, datetime]], first: datetime, reservation: SlurmReservation) -> str:
    """Return why a reservation cannot be a window of this log; empty if it can."""
    if not hosts:
        return "the machine has none of its nodes"
    if not times:
        return (
            "it ended before the first job of the log"
            if reservation.end <= first
            else "it begins more than a week after the last job of the log"
        )
    if len(times) > MOST_REPEATS:
        return f"it repeats more than {MOST_REPEATS:,} times"
    return ""


def _note_differences(cluster: SlurmCluster, place: str, reservation: SlurmReservation, hosts: int) -> None:
    """Record how the windows made from a reservation differ from it."""
    label = f"{place}: reservation {reservation.name}"
    if hosts < len(reservation.nodes):
        missing, nodes = len(reservation.nodes) - hosts, format_count(len(reservation.nodes), "node")
        cluster.leave_out(f"{label}: {missing} of its {nodes} {'is' if missing == 1 else 'are'} not in the machine")
    if reservation.users and reservation.accounts:
        cluster.leave_out(f"{label}: jobs of its users or of its accounts may use it, not only jobs that match both")
    if {*reservation.users, *reservation.accounts} - {"root"} and "MAGNETIC" not in reservation.flags:
        cluster.leave_out(f"{label}: jobs of its users or accounts need not name it to use its nodes")
    for field, names in (("User", reservation.users), ("Account", reservation.accounts)):
        if names and field not in cluster.columns:
            cluster.leave_out(f"{label}: no job may use it: the log has no {field}")
    for flag in reservation.flags:
        if flag not in HARMLESS and flag not in REPEATS:
            cluster.leave_out(f"{label}: Flags={flag}: {_FLAGS.get(flag, 'the flag has no effect')}")


def _owners(cluster: SlurmCluster) -> Mapping[str, str]:
    """Return host -> name of its owner in machine.toml."""
    return {
        host: f"rack{k}.{kind}{i}"
        for k, types in enumerate(racks_of(cluster).values())
        for kind, hosts in types.items()
        for i, host in enumerate(hosts)
    }


def _local(ns: int, local: tzinfo) -> datetime:
    """Return a time in ns since 1970 as local time without zone."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=ns // SECOND)).astimezone(local).replace(tzinfo=None)


def _ns(time: datetime, local: tzinfo) -> int:
    """Return a local time in ns since 1970."""
    return int(time.replace(tzinfo=local).timestamp()) * SECOND
