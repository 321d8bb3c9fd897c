"""Benches that workers of any process can import."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from poolwise.errors import InputError
from poolwise.hashing import digest
from poolwise.runner import Record, TaskType


@dataclass(frozen=True)
class Squares(TaskType[int]):
    """Squares of numbers, each after some seconds; one of them may fail."""

    seconds: float = 0.0
    failing: int | None = None

    def key(self, trial: int) -> str:
        return digest(str(trial))

    def label(self, trial: int) -> str:
        return f"n={trial}"

    def run(self, trial: int) -> Record:
        time.sleep(self.seconds)
        return Record({"square": trial**2, "by": 1 // (trial != self.failing)}, {"txt": str(trial).encode() * 100})


@dataclass(frozen=True)
class Lengths(TaskType[str]):
    """Lengths of files; an empty one is an error."""

    def key(self, trial: str) -> str:
        return digest(Path(trial).read_bytes())

    def label(self, trial: str) -> str:
        return Path(trial).stem

    def run(self, trial: str) -> Record:
        length = Path(trial).stat().st_size
        if not length:
            raise InputError(f"nothing in {trial}", file=trial, remedy="fill it")
        return Record({"length": length})


@dataclass(frozen=True)
class Deadly(TaskType[int]):
    """Kills the process that runs it."""

    def key(self, trial: int) -> str:
        return digest(str(trial))

    def label(self, trial: int) -> str:
        return f"n={trial}"

    def run(self, trial: int) -> Record:
        os._exit(1)


@dataclass(frozen=True)
class Mortal(TaskType[int]):
    """Kills the process that runs it, once for each trial: a folder remembers."""

    folder: Path

    def key(self, trial: int) -> str:
        return digest(str(trial))

    def label(self, trial: int) -> str:
        return f"n={trial}"

    def run(self, trial: int) -> Record:
        died = self.folder / f"{trial}.died"
        if not died.exists():
            died.touch()
            os._exit(1)
        return Record({"n": trial})
