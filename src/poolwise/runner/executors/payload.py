"""What travels to a worker that shares no files with this computer: pickled things, and the files that they name.

A file is named in a parcel by the SHA-256 of its bytes; the bytes travel once to a worker, which keeps them in a folder of
its own. What is unpacked there names the file in that folder, wherever the thing had the path: alone, before ":Name" of the
user's own code, or within settings that are written as JSON.
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
"""An absolute path, as JSON writes it."""


@dataclass(frozen=True)
class Payload:
    """A pickled thing.

    Attributes
    ----------
    content : the pickle
    files : SHA-256 -> path on the computer that packed it, of every file that the thing names
    """

    content: bytes = field(repr=False)
    files: Mapping[str, Path]

    @classmethod
    def of(cls, thing: object) -> Payload:
        """Pack a thing, which may name files by absolute paths (and by `Path`, relative ones too)."""
        buffer, files = io.BytesIO(), dict[str, Path]()
        _Packer(buffer, files).dump(thing)
        return cls(buffer.getvalue(), files)

    def open(self) -> Any:
        """Unpack on a worker, whose folder holds the files (`keep_file`)."""
        return _Unpacker(io.BytesIO(self.content)).load()


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, files: dict[str, Path]) -> None:
        super().__init__(file, protocol=5)
        self._files = files

    def persistent_id(self, thing: Any) -> Any:
        if isinstance(thing, Path):
            found = self._place(str(thing.absolute()))
            return None if found is None else ("path", (found,))
        if type(thing) is not str or "/" not in thing:
            return None
        within_json = _is_json(thing)
        parts, end = list[Any](), 0
        for begin, stop in [match.span() for match in _IN_JSON.finditer(thing)] if within_json else [(0, len(thing))]:
            text = json.loads(f'"{thing[begin:stop]}"') if within_json else thing
            where, colon, name = text.rpartition(":")
            path, rest = (where, f":{name}") if colon and where.endswith(".py") else (text, "")
            found = self._place(path) if path.startswith("/") else None
            if found is not None:
                parts += [thing[end:begin], found, rest]
                end = stop
        return ("json" if within_json else "text", (*parts, thing[end:])) if parts else None

    def _place(self, text: str) -> tuple[str, ...] | None:
        """How a path is written in a parcel; None for what is no file, which stays as it is."""
        path = Path(text)
        try:
            if not path.is_file():
                return None
        except OSError:  # a text that is too long for a path is none
            return None
        if path.is_relative_to(catalog.FOLDER):
            return (path.relative_to(catalog.FOLDER).as_posix(),)
        stat = path.stat()
        sha256 = _sum(path, stat.st_mtime_ns, stat.st_size)
        self._files[sha256] = path
        return sha256, path.name


class _Unpacker(pickle.Unpickler):
    def persistent_load(self, written: Any) -> Any:
        kind, parts = written
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


def _path(place: tuple[str, ...]) -> Path:
    return catalog.FOLDER / place[0] if len(place) == 1 else file_of(place[0]) / place[1]


@lru_cache(maxsize=1024)
def _sum(path: Path, changed_ns: int, size: int) -> str:
    return digest(path.read_bytes())


def file_of(sha256: str) -> Path:
    """Folder of a file with these bytes, in which it stands under its own name."""
    return _kept() / sha256


def keep_file(sha256: str, name: str, content: bytes) -> None:
    """Keep a file that came with a parcel; one that is there is left as it is, unless its bytes are others."""
    path = file_of(sha256) / name
    if not path.is_file() or digest(path.read_bytes()) != sha256:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)


@lru_cache(maxsize=1)
def _kept() -> Path:
    """The folder of files that came, one for each user; raises InputError if it is another user's."""
    folder = Path(tempfile.gettempdir()) / f"poolwise-inputs-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise InputError("this folder is another user's", file=folder, remedy="set TMPDIR where the workers are started")
    return folder
