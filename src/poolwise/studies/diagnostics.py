"""What to know of a study before its answer: load, jobs that can never run and outliers, for each of its machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poolwise.diagnostics import Diagnostics
from poolwise.hashing import Json
from poolwise.studies.measured import MeasuredStudy
from poolwise.studies.notes import cells_by_machine


@dataclass(frozen=True)
class MachineDiagnostics:
    """What to know of the workload on one machine of a study.

    Attributes
    ----------
    machine : what the study varies of the machine, in words; "" where nothing
    found : of the run that can take the fewest jobs there
    """

    machine: str
    found: Diagnostics

    def to_dict(self) -> Json:
        """Plain data."""
        return {"machine": self.machine, **self.found.to_dict()}


def by_machine(result: MeasuredStudy) -> list[MachineDiagnostics]:
    """Look at each machine of a study, by the run on it that rejects the most jobs, of equal ones the first."""
    return [
        MachineDiagnostics(machine, Diagnostics.of(result.outcomes(max(cells, key=lambda cell: sum(cell.rejected.values())))))
        for machine, cells in cells_by_machine(result)
    ]


def sanity_sentences(machines: Sequence[MachineDiagnostics]) -> list[str]:
    """Every sentence once; one that does not hold on all machines says where it does."""
    where: dict[str, list[str]] = {}
    for one in machines:
        for sentence in one.found.sentences:
            where.setdefault(sentence, []).append(one.machine)
    return [
        sentence if len(names) == len(machines) else f"On {', '.join(names)}: {sentence}" for sentence, names in where.items()
    ]
