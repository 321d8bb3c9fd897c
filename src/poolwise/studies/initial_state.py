"""Workload of a study that starts from a state: running jobs continue, and each cell's scheduler starts the waiting jobs."""

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
class StateSource:
    """The jobs of a state directory, and the expected hashes of its files.

    Attributes
    ----------
    path : path of state.toml
    digests : canonical JSON: file name -> SHA-256 of the file's bytes
    default_runtime : assumed run time of jobs without a time limit, ns
    first, jobs : always 0 and None, since all jobs are used
    without : ids of jobs to leave out, to measure their effect
    """

    path: str
    digests: str
    default_runtime: int
    first: int = 0
    jobs: int | None = None
    without: tuple[int, ...] = ()

    @classmethod
    def of(cls, file: Path, default_runtime: int) -> StateSource:
        """Create the workload from the path of a state.toml; raises InputError if a file of the directory is missing."""
        return cls(str(file), canonical(state_digests(file)), default_runtime)

    @property
    def sha256(self) -> str:
        """Hash of the file hashes, in place of the hash of a trace file."""
        return digest(self.digests)

    def files(self) -> Mapping[str, str]:
        """Return path -> SHA-256 for each file of the state directory."""
        return {str(Path(self.path).with_name(name)): sha256 for name, sha256 in json.loads(self.digests).items()}

    def content(self) -> Json:
        """Return everything that a result depends on."""
        left_out = {"without": list(self.without)} if self.without else {}
        return {"state": self.sha256, "default_runtime": self.default_runtime, **left_out}

    def read(self, machine: Machine) -> Workload:
        """Read the running and waiting jobs; raises InputError if a file is invalid or changed since the study was loaded."""
        return without(self._run(machine).workload, self.without)

    def initial(self, machine: Machine) -> Initial:
        """Return the running jobs, as rows of the workload."""
        state = self._run(machine)
        if not self.without:
            return state.initial
        ids = state.workload.id.tolist()
        remaining = [number for number in ids if number not in set(self.without)]
        row = {number: k for k, number in enumerate(remaining)}
        runs = [run._replace(job=row[ids[run.job]]) for run in state.initial.runs if ids[run.job] in row]
        return state.initial._replace(runs=runs)

    def _run(self, machine: Machine) -> StateRun:
        file = Path(self.path)
        if canonical(state_digests(file)) != self.digests:
            raise InputError("the state changed during the study", file=file, remedy="run the study again")
        return state_run(on_machine(_state(self.path, self.digests), machine, file), self.default_runtime)


def state_digests(file: Path) -> Mapping[str, str]:
    """Return the SHA-256 of each file of a state directory; raises InputError if one is missing."""
    try:
        return {name: digest((file.parent / name).read_bytes()) for name in FILES}
    except FileNotFoundError as error:
        problem = f"the state directory has no {Path(error.filename).name}"
        raise InputError(problem, file=file, remedy="give the state.toml that `poolwise snapshot` wrote") from error


@lru_cache(maxsize=1)
def _state(path: str, digests: str) -> MachineState:
    """Read a state, cached for the cells of a process."""
    return read_state(Path(path).parent)


def on_machine(state: MachineState, machine: Machine, file: Path) -> MachineState:
    """Return the state on a machine whose owners have other capacities.

    Raises InputError if the machine has other owners or resources, or less capacity than the running jobs hold.
    """
    original = state.machine
    if (machine.owners, machine.resources) != (original.owners, original.resources):
        raise InputError(
            "the study's machine and the state's machine have different nodes, pools or devices",
            file=file,
            field="machine",
            remedy="use the machine.toml of the state directory; only capacities may differ",
        )
    return replace(state, machine=machine)
