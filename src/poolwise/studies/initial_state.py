"""A machine at work as the workload of a study: what runs goes on, what waits is started by the scheduler of each cell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from poolwise.engines.from_state import StateRun, state_run
from poolwise.errors import InputError
from poolwise.files.state import FILES, read_state
from poolwise.hashing import Json, canonical, digest
from poolwise.model import Initial, Machine, MachineState, Workload
from poolwise.traces import without


@dataclass(frozen=True)
class SavedState:
    """The jobs of a state directory, and the bytes that its files must have.

    Attributes
    ----------
    path : its state.toml
    digests : canonical JSON, name of a file -> SHA-256 of its bytes
    unsaid : ns that a job runs which did not say how long it runs
    first, jobs : all jobs are taken
    without : ids of jobs that are left out, to see what depends on them
    """

    path: str
    digests: str
    unsaid: int
    first: int = 0
    jobs: int | None = None
    without: tuple[int, ...] = ()

    @classmethod
    def of(cls, file: Path, unsaid: int) -> SavedState:
        """Take a state directory by its state.toml; raises InputError where a file of it is missing."""
        return cls(str(file), canonical(state_digests(file)), unsaid)

    @property
    def sha256(self) -> str:
        """Hash of the hashes of its files, in the place of a trace's bytes."""
        return digest(self.digests)

    def files(self) -> Mapping[str, str]:
        """Path of each of its files -> SHA-256 of its bytes."""
        return {str(Path(self.path).with_name(name)): sha256 for name, sha256 in json.loads(self.digests).items()}

    def content(self) -> Json:
        """What a result depends on."""
        left_out = {"without": list(self.without)} if self.without else {}
        return {"state": self.sha256, "unsaid": self.unsaid, **left_out}

    def read(self, machine: Machine) -> Workload:
        """Read the jobs at work and those that wait; raises InputError, also if a file has changed meanwhile."""
        return without(self._run(machine).workload, self.without)

    def initial(self, machine: Machine) -> Initial:
        """What runs already; rows of the workload."""
        found = self._run(machine)
        if not self.without:
            return found.initial
        ids = found.workload.id.tolist()
        left = [number for number in ids if number not in set(self.without)]
        row = {number: k for k, number in enumerate(left)}
        runs = [run._replace(job=row[ids[run.job]]) for run in found.initial.runs if ids[run.job] in row]
        return found.initial._replace(runs=runs)

    def _run(self, machine: Machine) -> StateRun:
        file = Path(self.path)
        if canonical(state_digests(file)) != self.digests:
            raise InputError("the state changed while the study ran", file=file, remedy="run the study again")
        return state_run(on_machine(_state(self.path, self.digests), machine, file), self.unsaid)


def state_digests(file: Path) -> Mapping[str, str]:
    """SHA-256 of the bytes of each file of a state directory; raises InputError where one is missing."""
    try:
        return {name: digest((file.parent / name).read_bytes()) for name in FILES}
    except FileNotFoundError as error:
        problem = f"the state directory has no {Path(error.filename).name}"
        raise InputError(problem, file=file, remedy="give the state.toml that `poolwise snapshot` wrote") from error


@lru_cache(maxsize=1)
def _state(path: str, digests: str) -> MachineState:
    """Read a state once for the cells of a process."""
    return read_state(Path(path).parent)


def on_machine(state: MachineState, machine: Machine, file: Path) -> MachineState:
    """The same state on a machine that has more or less of what its owners have.

    Raises InputError for a machine with other owners or resources, and for one that has less than what runs hold.
    """
    there = state.machine
    if (machine.owners, machine.resources) != (there.owners, there.resources):
        raise InputError(
            "the machine of the study has other nodes, pools or devices than that of the state",
            file=file,
            field="machine",
            remedy="name the machine.toml beside it; what its nodes and pools have may be another amount",
        )
    return replace(state, machine=machine)
