"""Pickled objects for workers without a shared file system, together with the files that the objects name.

A payload identifies a file by the SHA-256 of its bytes. The bytes are sent once per worker, which stores them in its own
folder. Unpacking replaces each path with the worker's path, wherever it occurs: alone, before ":Name" of user code, or within
settings written as JSON.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from poolwise import catalog
from poolwise.atomic_write import write_whole
from poolwise.errors import InputError
from poolwise.hashing import digest

_IN_JSON = re.compile(r'(?<=")/(?:[^"\\]|\\.)+')
"""An absolute path in JSON."""


@dataclass(frozen=True)
class Payload:
    """A pickled object.

    Attributes
    ----------
    content : pickle
    files : SHA-256 -> path on the packing computer, for every file that the object names
    """

    content: bytes = field(repr=False)
    files: Mapping[str, Path]

    @classmethod
    def of(cls, thing: object) -> Payload:
        """Pack an object, which may refer to files by absolute paths (or by `Path`, also relative)."""
        buffer, files = io.BytesIO(), dict[str, Path]()
        _Packer(buffer, files).dump(thing)
        return cls(buffer.getvalue(), files)

    def open(self) -> Any:
        """Unpack on a worker that holds the files (`store_file`)."""
        return _Unpacker(io.BytesIO(self.content)).load()


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, files: dict[str, Path]) -> None:
        super().__init__(file, protocol=5)
        self._files = files

    def persistent_id(self, thing: Any) -> Any:
        if isinstance(thing, Path):
            location = self._location(str(thing.absolute()))
            return None if location is None else ("path", (location,))
        if type(thing) is not str or "/" not in thing:
            return None
        within_json = _is_json(thing)
        parts, end = list[Any](), 0
        for begin, stop in [match.span() for match in _IN_JSON.finditer(thing)] if within_json else [(0, len(thing))]:
            text = json.loads(f'"{thing[begin:stop]}"') if within_json else thing
            module, colon, name = text.rpartition(":")
            path, rest = (module, f":{name}") if colon and module.endswith(".py") else (text, "")
            location = self._location(path) if path.startswith("/") else None
            if location is not None:
                parts += [thing[end:begin], location, rest]
                end = stop
        return ("json" if within_json else "text", (*parts, thing[end:])) if parts else None

    def _location(self, text: str) -> tuple[str, ...] | None:
        """Return a file's location in the payload; None if the text names no file and stays unchanged."""
        path = Path(text)
        try:
            if not path.is_file():
                return None
        except OSError:  # a text too long for a path
            return None
        if path.is_relative_to(catalog.FOLDER):
            return (path.relative_to(catalog.FOLDER).as_posix(),)
        stat = path.stat()
        sha256 = _sum(path, stat.st_mtime_ns, stat.st_size)
        self._files[sha256] = path
        return sha256, path.name


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, location: Any) -> Any:
        kind, parts = location
        if kind == "path":
            return _path(parts[0])
        texts = [str(_path(part)) if isinstance(part, tuple) else part for part in parts]
        if kind == "json":
            texts = [json.dumps(t)[1:-1] if isinstance(p, tuple) else t for t, p in zip(texts, parts, strict=True)]
        return "".join(texts)


def _is_json(text: str) -> bool:
    try:
        return text.startswith(("{", "[")) and json.loads(text) is not None
    except ValueError:
        return False


def _path(location: tuple[str, ...]) -> Path:
    return catalog.FOLDER / location[0] if len(location) == 1 else input_folder(location[0]) / location[1]


@lru_cache(maxsize=1024)
def _sum(path: Path, changed_ns: int, size: int) -> str:
    return digest(path.read_bytes())


def input_folder(sha256: str) -> Path:
    """Return the folder for a file with these bytes; the file keeps its own name there."""
    return _inputs_folder() / sha256


def store_file(sha256: str, name: str, content: bytes) -> None:
    """Store a file of a payload, unless it already exists with the right content."""
    path = input_folder(sha256) / name
    if not path.is_file() or digest(path.read_bytes()) != sha256:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)


@lru_cache(maxsize=1)
def _inputs_folder() -> Path:
    """Return the user's folder of received files; raises InputError if it belongs to another user."""
    folder = Path(tempfile.gettempdir()) / f"poolwise-inputs-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise InputError("the folder belongs to another user", file=folder, remedy="set TMPDIR where the workers are started")
    return folder
