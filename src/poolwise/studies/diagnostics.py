"""Diagnostics of a study per machine: load, jobs that can never run, and outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolwise.diagnostics import Diagnostics
from poolwise.hashing import Json
from poolwise.metrics import Outcomes
from poolwise.studies.cells import Cell, workload_of
from poolwise.studies.measured import MeasuredStudy
from poolwise.studies.notes import cells_by_machine


@dataclass(frozen=True)
class MachineDiagnostics:
    """Diagnostics of the workload on one machine of a study.

    Attributes
    ----------
    machine : varied machine values as text; "" if the machine does not vary
    found : diagnostics of the run that rejects the most jobs
    """

    machine: str
    found: Diagnostics

    def to_dict(self) -> Json:
        """Return plain data."""
        return {"machine": self.machine, **self.found.to_dict()}


def by_machine(result: MeasuredStudy) -> list[MachineDiagnostics]:
    """Return the diagnostics of each machine, from its run with the most rejected jobs (the first one in case of ties)."""
    most = {machine: max(cells, key=lambda cell: sum(cell.rejected.values())) for machine, cells in cells_by_machine(result)}
    return [
        MachineDiagnostics(machine, diagnostics_of(result.simulated(cell), result.outcomes(cell)))
        for machine, cell in most.items()
    ]


def diagnostics_of(cell: Cell, outcomes: Outcomes) -> Diagnostics:
    """Return the diagnostics of a cell; its workload is read again only for loads of shared nodes and of partitions."""
    if outcomes.whole_nodes and not cell.machine.partitions:
        return Diagnostics.of(outcomes)
    return Diagnostics.of(outcomes, workload_of(cell), cell.machine)


def diagnostic_sentences(machines: Sequence[MachineDiagnostics]) -> list[str]:
    """Return each sentence once; a sentence that does not apply to all machines names those to which it applies."""
    where: dict[str, list[str]] = {}
    for machine in machines:
        for sentence in machine.found.sentences:
            where.setdefault(sentence, []).append(machine.machine)
    return [
        sentence if len(names) == len(machines) else f"On {', '.join(names)}: {sentence}" for sentence, names in where.items()
    ]
