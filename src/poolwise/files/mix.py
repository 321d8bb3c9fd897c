"""Mix files: kinds of workloads on pooled devices, their shares and deadlines, as TOML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from poolwise.errors import InputError
from poolwise.files.document import Document
from poolwise.files.fields import Bandwidth, Memory, Name, Positive, Section, Time, check_version, validate
from poolwise.performance.nvme_sharing import NvmeSharing
from poolwise.performance.sharing_table import CATALOG, SharingTable
from poolwise.traces.generators.nvme_mix import NvmeMix, WorkloadKind
from poolwise.units import SECOND

Weight = Annotated[float, Field(gt=0)]


class MixKind(Section):
    """One kind of workload: what it asks for and how long it takes."""

    name: Name
    base_time: Time = Field(description="run time when nothing disturbs it")
    cores: Positive
    bandwidth: Bandwidth = 0
    storage: Memory = 0
    peak_bandwidth: Bandwidth | None = Field(
        None, description="bandwidth beyond which more is of no use; its bandwidth if not given"
    )
    share: Weight = Field(1.0, description="weight among the kinds")
    table: str | None = Field(None, description='performance table: a CSV file beside this one, or "catalog:NAME"')
    partners: list[Name] = Field([], description="other kinds with a table that it may share devices with")


class MixFile(Section):
    """A mix of workloads."""

    version: Annotated[Literal[1], Field(description="version of this format")]
    title: str = ""
    jobs: Positive = 1500
    high_priority: Annotated[float, Field(ge=0, le=1, description="share of urgent workloads")] = 0.2
    deadline_factor: Annotated[float, Field(ge=0, description="deadline = arrival + factor * base time")] = 4.0
    high_priority_factor: Annotated[float, Field(ge=0, description="the same for urgent workloads")] = 1.2
    kind: list[MixKind] = Field(min_length=1)

    def mix(self, seed: int) -> NvmeMix:
        """Return the generator of its workloads."""
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

    Raises InputError naming file, line and field; for a wrong table the table's file and cell.
    """
    document = Document.read(path)
    check_version(document)
    file = validate(MixFile, document)
    known = [kind.name for kind in file.kind]
    tables: dict[str, SharingTable | str] = {}
    for k, kind in enumerate(file.kind):
        if known.index(kind.name) != k:
            raise document.error(
                ("kind", k, "name"), f"the kind '{kind.name}' stands twice", "give each kind a name of its own"
            )
        for partner in kind.partners:
            if partner not in known:
                raise document.unknown(("kind", k, "partners"), "kind", partner, known)
        if kind.table is not None:
            tables[kind.name] = _table(document, k, kind.table)
        elif kind.partners:
            raise document.error(("kind", k, "partners"), "a kind without a table has no partners", "give it a table")
    partners = {kind.name: tuple(kind.partners) for kind in file.kind if kind.partners}
    return file, NvmeSharing(tables, partners)


def _table(document: Document, k: int, reference: str) -> SharingTable:
    beside = reference if reference.startswith(CATALOG) else document.file.parent / reference
    if isinstance(beside, Path) and not beside.is_file():
        raise document.error(("kind", k, "table"), f"no such file: {reference}", f'give a CSV file, or "{CATALOG}NAME"')
    try:
        return SharingTable.read(beside)
    except InputError as error:
        if error.line is None and not isinstance(beside, Path):
            raise document.error(("kind", k, "table"), error.message, error.remedy) from error
        raise
