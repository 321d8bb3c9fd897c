"""Needs of a workload for nodes and devices, and its expected time on a composition."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from poolwise.errors import InputError
from poolwise.model import JobTable, Snapshot
from poolwise.model.snapshot import Estimate, model_parts
from poolwise.performance.nvme_sharing import NvmeSharing, kind_of, relative
from poolwise.performance.sharing_table import OffersTables, SharingTable
from poolwise.quantities import NEVER, with_slowdown


@dataclass(frozen=True)
class Sharing:
    """The scheduler's model of sharing: the tables of its estimate, and whether residents change speed during a run."""

    model: OffersTables
    changes: bool
    tables: dict[str, SharingTable | None] = field(default_factory=dict)  # a cache

    @classmethod
    def of(cls, estimate: Estimate) -> Sharing:
        """Find the model with sharing tables in an estimate; an estimate without models means base times everywhere.

        Raises InputError for a model without sharing tables.
        """
        models = model_parts(estimate)
        for model in models:
            if isinstance(model, OffersTables):
                return cls(model, not model.fixed_at_start)
        if models:
            raise InputError(
                f"composition requires a performance model with sharing tables, not {type(estimate).__name__}",
                field="performance.model",
                remedy="use nvme_sharing with a table for each kind, or ideal for base times",
            )
        return cls(NvmeSharing(), False)

    def table(self, kind: str) -> SharingTable | None:
        """Return the table of a kind; None if runs of the kind take their base time."""
        if kind not in self.tables:
            self.tables[kind] = self.model.table(kind)
        return self.tables[kind]

    def most_sharers(self, kinds: frozenset[str], need: CompositionRequest) -> int:
        """Return the maximum number of runs that the tables of all kinds on a composition cover."""
        assert need.table is not None
        return min([need.table.sharers, *(table.sharers for kind in kinds if (table := self.table(kind)) is not None)])


@dataclass(frozen=True, slots=True)
class CompositionRequest:
    """One workload as seen by composition policies.

    Attributes
    ----------
    kind : kind of the workload if it has a table, else ""; all unmodeled kinds share in the same way
    bandwidth : MB/s, base demand
    storage : MiB
    peak : MB/s beyond which more bandwidth is of no use
    requested : ns, base time
    duration : ns of work to which the table's times are relative, as known to the scheduler
    deadline : ns, `NEVER` without one
    late : whether its deadline has passed, so that it no longer constrains anything
    """

    job: int
    kind: str
    cores: int
    bandwidth: int
    storage: int
    peak: int
    requested: int
    duration: int
    deadline: int
    table: SharingTable | None
    late: bool = False

    @classmethod
    def of(cls, job: int, snapshot: Snapshot, sharing: Sharing) -> CompositionRequest:
        """Read row `job` of the job table."""
        workload = snapshot.table
        bandwidth = int(workload.request("bandwidth")[job])
        table = sharing.table(kind_of(workload, job))
        return cls(
            job,
            "" if table is None else kind_of(workload, job),
            int(workload.request("cores")[job]),
            bandwidth,
            int(workload.request("storage")[job]),
            _attribute(workload, "peak_bandwidth", job, bandwidth),
            int(workload.requested[job]),
            int(snapshot.work[job]),
            _attribute(workload, "deadline", job, NEVER),
            table,
        )

    def at(self, now: int) -> CompositionRequest:
        """Return the need at a time: without its deadline once the deadline has passed."""
        return self if now < self.deadline else replace(self, deadline=NEVER, late=True)

    @property
    def nvme(self) -> bool:
        """True if the workload needs any devices."""
        return self.bandwidth > 0 or self.storage > 0

    def slowdown(self, devices: int, sharers: int) -> float:
        """Return the expected slowdown on a composition of `devices` with `sharers` sharers, itself included."""
        return 0.0 if self.table is None else relative(self.table, devices, sharers, self.duration)

    def time(self, devices: int, sharers: int) -> int:
        """Return the expected total time (ns) on such a composition."""
        return with_slowdown(float(self.requested), self.slowdown(devices, sharers))

    def shares_with(self, kinds: frozenset[str], sharing: Sharing) -> bool:
        """Return whether it may share with residents of these kinds: its own kind, mutual partners, or all unmodeled kinds."""
        if kinds == {self.kind}:
            return True
        if self.table is None:
            return False
        return all(
            kind == self.kind
            or (kind in self.table.partners and (other := sharing.table(kind)) is not None and self.kind in other.partners)
            for kind in kinds
        )


def _attribute(workload: JobTable, name: str, job: int, missing: int) -> int:
    column = workload.attributes.get(name)
    return missing if column is None else int(column[job])
