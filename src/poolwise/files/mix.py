"""Mix files: TOML that describes kinds of workloads on pooled devices, with their shares and deadlines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from poolwise.files.document import Document
from poolwise.files.fields import Bandwidth, FileName, Memory, Name, Positive, Section, Time
from poolwise.files.validation import validate
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.sharing_table import SharingTable
from poolwise.quantities import SECOND
from poolwise.traces.generators.nvme_mix import NvmeMix, WorkloadKind

Weight = Annotated[float, Field(gt=0)]


class MixKind(Section):
    """One kind of workload: its resources and run time."""

    name: Name
    base_time: Time = Field(description="run time without interference")
    cores: Positive
    bandwidth: Bandwidth = 0
    storage: Memory = 0
    peak_bandwidth: Bandwidth | None = Field(
        None, description="maximum bandwidth that the workload can use; `bandwidth` if not given"
    )
    share: Weight = Field(1.0, description="weight among the kinds")
    table: Annotated[str | None, FileName('give a CSV file, or "catalog:NAME"', "sharing_tables")] = Field(
        None, description='performance table: a CSV file relative to this one, or "catalog:NAME"'
    )
    partners: list[Name] = Field([], description="other kinds with a table that may share devices with this kind")


class MixFile(Section):
    """A mix of workloads."""

    version: Annotated[Literal[1], Field(description="version of the file format")]
    title: str = ""
    jobs: Positive = 1500
    high_priority: Annotated[float, Field(ge=0, le=1, description="share of high-priority workloads")] = 0.2
    deadline_factor: Annotated[float, Field(ge=0, description="deadline = arrival + factor * base time")] = 4.0
    high_priority_factor: Annotated[float, Field(ge=0, description="deadline factor of high-priority workloads")] = 1.2
    kind: list[MixKind] = Field(min_length=1)

    def mix(self, seed: int) -> NvmeMix:
        """Return the generator of this mix."""
        kinds = tuple(
            WorkloadKind(
                kind.name,
                kind.base_time / SECOND,
                kind.cores,
                kind.bandwidth,
                kind.storage,
                kind.bandwidth if kind.peak_bandwidth is None else kind.peak_bandwidth,
                kind.share,
            )
            for kind in self.kind
        )
        return replace(
            NvmeMix(),
            kinds=kinds,
            jobs=self.jobs,
            seed=seed,
            high_priority=self.high_priority,
            factor=self.deadline_factor,
            high_priority_factor=self.high_priority_factor,
        )


def load_mix(path: Path) -> tuple[MixFile, NvmeSharing]:
    """Read a mix and the performance tables that it names.

    Raises InputError with file, line and field; an error in a table reports the table's file and cell.
    """
    document = Document.read(path)
    file = validate(MixFile, document)
    kinds = [kind.name for kind in file.kind]
    tables: dict[str, SharingTable | str] = {}
    for k, kind in enumerate(file.kind):
        if kinds.index(kind.name) != k:
            raise document.error(("kind", k, "name"), f"duplicate kind '{kind.name}'", "give each kind a unique name")
        for partner in kind.partners:
            if partner not in kinds:
                raise document.unknown(("kind", k, "partners"), "kind", partner, kinds)
        if kind.table is not None:
            tables[kind.name] = SharingTable.read(kind.table)
        elif kind.partners:
            raise document.error(("kind", k, "partners"), "a kind without a table cannot have partners", "give it a table")
    partners = {kind.name: tuple(kind.partners) for kind in file.kind if kind.partners}
    return file, NvmeSharing(tables, partners)
