"""NVMe-sharing model: measured run times for each composition size and number of sharers.

Source: Call et al., section IV-A and Figure 3; NVMe-composition spec, "Workloads".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from poolwise.errors import PolicyError
from poolwise.model import JobTable, Kind, Machine, Placement, Run, Snapshot
from poolwise.performance.ideal import SimpleModel
from poolwise.performance.sharing_table import SharingTable
from poolwise.registry import InputFile, register


@register("models", "nvme_sharing")
@dataclass(frozen=True)
class NvmeSharing(SimpleModel):
    """Slowdown = table time / base time - 1, where the base time is the run's work (`Snapshot.work`).

    The job table's text column "kind" selects the table of a job; jobs of a kind without a table always take their base time.
    When sharers join or leave, the remaining work of a run continues at the new rate.

    Raises InputError for a table that cannot be read.

    Parameters
    ----------
    tables
        Kind -> its table, or the CSV file that contains it ("catalog:NAME" for a shipped one).
    partners
        Kind -> other kinds with which it may share a composition; all of them count as sharers. Both kinds must name each
        other. Jobs of a kind without a table share only with each other.
    fixed_at_start
        Let a run keep its initial speed regardless of later changes, as in the authors' simulator.
    """

    tables: Mapping[str, SharingTable | InputFile] = field(default_factory=dict)
    partners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed_at_start: bool = False

    def __post_init__(self) -> None:
        _ = self._read  # reject an invalid table at construction, not when a run starts

    @cached_property
    def _read(self) -> dict[str, SharingTable]:
        tables = {kind: SharingTable.read(table) if isinstance(table, str) else table for kind, table in self.tables.items()}
        return {
            kind: replace(table, partners=tuple(self.partners[kind])) if kind in self.partners else table
            for kind, table in tables.items()
        }

    def table(self, kind: str) -> SharingTable | None:
        """Return the table of a kind, None if it has none."""
        return self._read.get(kind)

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return table time / base time - 1 at the present number of sharers; 0 without a table or devices."""
        table = self.table(kind_of(snapshot.table, run.job))
        devices = devices_of(run.placement, snapshot)
        if table is None or not devices:
            return 0.0
        others = [n for n in snapshot.occupants(devices[0]) if n != run.id or (n < 0 and snapshot.run(n) is not run)]
        return relative(table, len(devices), len(others) + 1, int(snapshot.work[run.job]))

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the devices of the placement, unless speeds are fixed at the start."""
        return () if self.fixed_at_start else devices_of(placement, snapshot)


def relative(table: SharingTable, devices: int, sharers: int, duration: int) -> float:
    """Return the slowdown relative to a base time of `duration` ns."""
    if sharers > table.sharers:
        raise PolicyError(f"{sharers} runs share a composition; the performance table covers at most {table.sharers}")
    return table.time(devices, sharers) * 1e9 / duration - 1.0


def kind_of(table: JobTable, job: int) -> str:
    """Return the kind of a job, "" if the job table has none."""
    kinds = table.attributes.get("kind")
    return "" if kinds is None else str(kinds[job])


def devices_of(placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
    """Return the devices of a placement, ascending."""
    return tuple(sorted(_devices(snapshot.machine).intersection(placement.owner.tolist())))


@lru_cache(maxsize=8)
def _devices(machine: Machine) -> frozenset[int]:
    """Return the owners that are devices; cached, since each speed change needs them."""
    return frozenset(machine.of_kind(Kind.DEVICE).tolist())
