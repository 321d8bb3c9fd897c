"""Worker side of a cluster: unpack a task, run it, and return its record or error."""

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
from poolwise.runner.execution import Finished, run_tasks
from poolwise.runner.executors.payload import Payload, input_folder, store_file
from poolwise.runner.task_type import TaskType

_PACKAGES = ("numba", "numpy", "polars", "scipy")
_one_at_a_time = Lock()  # a worker may have several threads, but warnings are caught per process


@dataclass(frozen=True)
class RemoteTask:
    """A group of tasks to run on a worker.

    Attributes
    ----------
    tasks : packed mapping of keys to tasks
    task_type : SHA-256 of the task type, which is shared by all tasks and sent as an input
    inputs : SHA-256 -> file name (empty for the task type), in the order of their bytes
    parts : number of pieces of each input
    versions : versions, on the sending computer, of everything that results depend on
    """

    tasks: Payload
    task_type: str
    inputs: Mapping[str, str]
    parts: Sequence[int]
    versions: Mapping[str, str]


@lru_cache(maxsize=1)
def versions() -> Mapping[str, str]:
    """Return the versions, on this computer, of everything that results depend on."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"Poolwise's sources": sources(), "Python": python, **{name: version(name) for name in _PACKAGES}}


def run_remote_task(remote_task: RemoteTask, *pieces: bytes) -> Finished | Exception:
    """Run a group of tasks; errors are returned rather than raised, so that the cluster neither wraps them nor retries."""
    with _one_at_a_time:
        try:
            _check_versions(remote_task.versions)
            content = _joined(remote_task, pieces)
            for sha256, name in remote_task.inputs.items():
                if name and (sha256, name) not in _stored:
                    store_file(sha256, name, bytes(content[sha256]))
                    _stored.add((sha256, name))
            task_type = _unpack_task_type(remote_task.task_type, content[remote_task.task_type])
            return list(run_tasks(task_type, remote_task.tasks.open()))
        except InputError as error:
            return _with_original_paths(error, remote_task)
        except PoolwiseError as error:
            return error
        except Exception as error:
            error.add_note(f"on worker {platform.node()}:\n{traceback.format_exc()}")
            return error


def _check_versions(required: Mapping[str, str]) -> None:
    wrong = [name for name, version in versions().items() if version != required[name]]
    if wrong:
        differences = ", ".join(f"{name} {versions()[name][:12]} instead of {required[name][:12]}" for name in wrong)
        problem = f"the worker on {platform.node()} has different versions: {differences}"
        raise InputError(problem, remedy="install the same versions on the workers and on this computer")


def _joined(remote_task: RemoteTask, pieces: Sequence[bytes]) -> dict[str, bytes | memoryview]:
    contents: dict[str, bytes | memoryview] = {}
    begin = 0
    for sha256, count in zip(remote_task.inputs, remote_task.parts, strict=True):
        part = pieces[begin : begin + count]
        contents[sha256] = part[0] if count == 1 else b"".join(part)
        begin += count
    return contents


_stored = set[tuple[str, str]]()  # SHA-256 and names of the inputs that this process has stored or verified
_task_types: dict[str, TaskType[Any]] = {}


def _unpack_task_type(sha256: str, content: bytes | memoryview) -> TaskType[Any]:
    """Unpack the task type; the most recent one is cached."""
    if sha256 not in _task_types:
        _task_types.clear()
        payload: Payload = pickle.loads(content)
        _task_types[sha256] = payload.open()
    return _task_types[sha256]


def _with_original_paths(error: InputError, remote_task: RemoteTask) -> InputError:
    """Return the error with the user's original paths instead of paths on the worker."""

    def original(text: str) -> str:
        for sha256, path in remote_task.tasks.files.items():
            text = text.replace(str(input_folder(sha256) / path.name), str(path))
        return text

    file, remedy = (None if text is None else original(str(text)) for text in (error.file, error.remedy))
    return type(error)(original(error.message), file=file, line=error.line, field=error.field, remedy=remedy)
