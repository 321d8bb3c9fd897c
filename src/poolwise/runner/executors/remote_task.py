"""What a worker of a cluster does: it unpacks a trial, runs it, and returns what came of it, or the error."""

from __future__ import annotations

import pickle
import platform
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from threading import Lock
from typing import Any

from poolwise.code_fingerprint import sources
from poolwise.errors import InputError, PoolwiseError
from poolwise.runner.execution import FinishedTask, run_trial
from poolwise.runner.executors.payload import Payload, file_of, keep_file
from poolwise.runner.task_type import TaskType

_PACKAGES = ("numba", "numpy", "polars", "scipy")
_one_at_a_time = Lock()  # a worker may have several threads, and warnings are caught for a whole process


@dataclass(frozen=True)
class RemoteTask:
    """A trial that travels.

    Attributes
    ----------
    key : of the trial
    trial : packed by itself; the bench, which all trials share, travels among the inputs
    bench : SHA-256 of the bench
    inputs : SHA-256 -> name of a file, empty for the bench; in the order in which their bytes come
    parts : how many pieces the bytes of each come in
    versions : of everything that results depend on, where the trial comes from
    """

    key: str
    trial: Payload
    bench: str
    inputs: Mapping[str, str]
    parts: Sequence[int]
    versions: Mapping[str, str]


@lru_cache(maxsize=1)
def versions() -> Mapping[str, str]:
    """Versions of everything on this computer that results depend on."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Poolwise's sources": sources(), "Python": python, **{name: version(name) for name in _PACKAGES}}


def do(errand: RemoteTask, *pieces: bytes) -> FinishedTask | Exception:
    """Run a trial; its error is returned rather than raised, so that a cluster neither wraps it nor tries again."""
    with _one_at_a_time:
        try:
            _check_versions(errand.versions)
            content = _joined(errand, pieces)
            for sha256, name in errand.inputs.items():
                if name:
                    _keep(sha256, name, content[sha256])
            return run_trial(_bench(errand.bench, content[errand.bench]), errand.key, errand.trial.open())
        except InputError as error:
            return _told(error, errand)
        except PoolwiseError as error:
            return error
        except Exception as error:
            error.add_note(f"on the worker {platform.node()}:\n{traceback.format_exc()}")
            return error


def _check_versions(there: Mapping[str, str]) -> None:
    wrong = [name for name, known in versions().items() if known != there[name]]
    if wrong:
        said = ", ".join(f"{name} {versions()[name][:12]} instead of {there[name][:12]}" for name in wrong)
        problem = f"the worker on {platform.node()} has other versions: {said}"
        raise InputError(problem, remedy="install on the workers what is installed here")


def _joined(errand: RemoteTask, pieces: Sequence[bytes]) -> dict[str, bytes | memoryview]:
    found: dict[str, bytes | memoryview] = {}
    begin = 0
    for sha256, count in zip(errand.inputs, errand.parts, strict=True):
        part = pieces[begin : begin + count]
        found[sha256] = part[0] if count == 1 else b"".join(part)
        begin += count
    return found


@lru_cache(maxsize=4096)
def _keep_once(sha256: str, name: str) -> list[bool]:
    return []


def _keep(sha256: str, name: str, content: bytes | memoryview) -> None:
    kept = _keep_once(sha256, name)
    if not kept:
        keep_file(sha256, name, bytes(content))
        kept.append(True)


_benches: dict[str, TaskType[Any]] = {}


def _bench(sha256: str, content: bytes | memoryview) -> TaskType[Any]:
    """Unpack the bench; one is kept, that of the last trial."""
    if sha256 not in _benches:
        _benches.clear()
        parcel: Payload = pickle.loads(content)
        _benches[sha256] = parcel.open()
    return _benches[sha256]


def _told(error: InputError, errand: RemoteTask) -> InputError:
    """The error as it would be where the trial comes from: it names the user's files, not those that came here."""

    def here(text: str) -> str:
        for sha256, path in errand.trial.files.items():
            text = text.replace(str(file_of(sha256) / path.name), str(path))
        return text

    file, remedy = (None if text is None else here(str(text)) for text in (error.file, error.remedy))
    return type(error)(here(error.message), file=file, line=error.line, field=error.field, remedy=remedy)
