"""Task types that workers of any process can import."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from poolwise.errors import InputError
from poolwise.hashing import digest
from poolwise.runner import Record, TaskType


@dataclass(frozen=True)
class Squares(TaskType[int]):
    """Task type that squares numbers after some seconds; one number may fail."""

    seconds: float = 0.0
    failing: int | None = None

    def key(self, task: int) -> str:
        return digest(str(task))

    def label(self, task: int) -> str:
        return f"n={task}"

    def run(self, task: int) -> Record:
        time.sleep(self.seconds)
        return Record({"square": task**2, "by": 1 // (task != self.failing)}, {"txt": str(task).encode() * 100})


@dataclass(frozen=True)
class Lengths(TaskType[str]):
    """Task type that measures the length of files; an empty file is an error."""

    def key(self, task: str) -> str:
        return digest(Path(task).read_bytes())

    def label(self, task: str) -> str:
        return Path(task).stem

    def run(self, task: str) -> Record:
        length = Path(task).stat().st_size
        if not length:
            raise InputError(f"nothing in {task}", file=task, remedy="fill it")
        return Record({"length": length})


@dataclass(frozen=True)
class Deadly(TaskType[int]):
    """Task type that kills its process."""

    def key(self, task: int) -> str:
        return digest(str(task))

    def label(self, task: int) -> str:
        return f"n={task}"

    def run(self, task: int) -> Record:
        os._exit(1)


@dataclass(frozen=True)
class Mortal(TaskType[int]):
    """Task type that kills its process once per task, as recorded in a folder."""

    folder: Path

    def key(self, task: int) -> str:
        return digest(str(task))

    def label(self, task: int) -> str:
        return f"n={task}"

    def run(self, task: int) -> Record:
        died = self.folder / f"{task}.died"
        if not died.exists():
            died.touch()
            os._exit(1)
        return Record({"n": task})


@dataclass(frozen=True)
class Growing(TaskType[int]):
    """Task type that keeps memory, so that joblib replaces its process."""

    def key(self, task: int) -> str:
        return digest(str(task))

    def label(self, task: int) -> str:
        return f"n={task}"

    def run(self, task: int) -> Record:
        _kept.append(bytearray(320_000_000))
        time.sleep(1.1)  # joblib looks at the memory of a process at most once a second
        return Record({"process": os.getpid()})


_kept: list[bytearray] = []
