"""Runs that share a composition of devices take as long as was measured for its size and the number of sharers.

Source: Call et al., section IV-A and Figure 3; specs of the NVMe composition, "Workloads".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from poolwise.errors import PolicyError
from poolwise.interfaces import PerformanceModel
from poolwise.model import JobTable, Kind, Machine, Placement, Run, Snapshot
from poolwise.performance.sharing_table import SharingTable
from poolwise.registry import register


@register("models", "nvme_sharing")
@dataclass(frozen=True)
class NvmeSharing(PerformanceModel):
    """Slowdown = table time / base time - 1, where the base time is the run's work (`Snapshot.work`).

    The job table's text column "kind" says which table holds for a job; a kind without a table takes its base time wherever it
    is. When sharers come and go, what is left of a run goes on at the new rate.

    Raises InputError for a table that cannot be read.

    Parameters
    ----------
    tables
        Kind -> its table, or the CSV file that holds it ("catalog:NAME" for a shipped one).
    partners
        Kind -> other kinds that it may share a composition with; whoever is there counts as a sharer. Both kinds must name
        each other. Unmodelled kinds share only among themselves.
    fixed_at_start
        A run keeps the speed that it started with, whoever comes or goes (what the authors' simulator does).
    """

    tables: Mapping[str, SharingTable | str] = field(default_factory=dict)
    partners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed_at_start: bool = False

    def __post_init__(self) -> None:
        _ = self._read  # a wrong table is refused where it is named, not when a run begins

    @cached_property
    def _read(self) -> dict[str, SharingTable]:
        found = {kind: SharingTable.read(table) if isinstance(table, str) else table for kind, table in self.tables.items()}
        return {
            kind: replace(table, partners=tuple(self.partners[kind])) if kind in self.partners else table
            for kind, table in found.items()
        }

    def table(self, kind: str) -> SharingTable | None:
        """Look up the table of a kind, None where it has none."""
        return self._read.get(kind)

    def setup(self, run: Run, view: Snapshot) -> int:
        """No time."""
        return 0

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """Table time / base time - 1 at the present number of sharers; 0 without a table or devices."""
        table = self.table(kind_of(view.table, run.job))
        devices = devices_of(run.placement, view)
        if table is None or not devices:
            return 0.0
        others = [n for n in view.occupants(devices[0]) if n != run.id or (n < 0 and view.run(n) is not run)]
        return relative(table, len(devices), len(others) + 1, int(view.work[run.job]))

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """The devices of the placement, unless speeds are fixed at the start."""
        return () if self.fixed_at_start else devices_of(placement, view)


def relative(table: SharingTable, devices: int, sharers: int, duration: int) -> float:
    """Slowdown against a base time of `duration` ns."""
    if sharers > table.sharers:
        raise PolicyError(f"{sharers} runs share a composition; the performance table covers at most {table.sharers}")
    return table.time(devices, sharers) * 1e9 / duration - 1.0


def kind_of(table: JobTable, job: int) -> str:
    """What kind a job is, "" where the job table does not say."""
    kinds = table.attributes.get("kind")
    return "" if kinds is None else str(kinds[job])


def devices_of(placement: Placement, view: Snapshot) -> tuple[int, ...]:
    """Devices that a placement names, ascending."""
    return tuple(sorted(_devices(view.machine).intersection(placement.owner.tolist())))


@lru_cache(maxsize=8)
def _devices(machine: Machine) -> frozenset[int]:
    """Owners that are devices; asked for at each change of speed, so kept."""
    return frozenset(machine.of_kind(Kind.DEVICE).tolist())
