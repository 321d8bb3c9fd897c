"""Text of trace files: reading detects gzip by content, writing selects it by file name."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from poolwise.atomic_write import check_writable, write_whole
from poolwise.errors import InputError

_GZIP = b"\x1f\x8b"


def read_text(path: Path) -> str:
    """Read a file of UTF-8 or else Latin-1 text, decompressed if it is gzip.

    Raises InputError for a missing file, damaged gzip, and a file with null bytes, which are not valid in these texts.
    """
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="check the path")
    data = path.read_bytes()
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(
                f"the gzip data are truncated or damaged: {error}", file=path, remedy="fetch or compress the file again"
            ) from error
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError("the file is not 8-bit text", file=path, line=line, remedy="save it as UTF-8 text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def stem(path: Path) -> str:
    """Return the name of a trace: the file name without ".gz" and the extension."""
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name


def beginning(path: Path, size: int = 65536) -> bytes:
    """Read the first bytes of a file, decompressed if it is gzip; return no bytes if it cannot be read."""
    try:
        with path.open("rb") as file:
            if file.read(2) == _GZIP:
                file.seek(0)
                with gzip.open(file) as unpacked:
                    return unpacked.read(size)
            file.seek(0)
            return file.read(size)
    except (EOFError, OSError, zlib.error):
        return b""


def write_text(path: Path, content: str) -> None:
    """Write UTF-8 text atomically, gzip if the name ends in ".gz"; the same text produces the same bytes."""
    data = content.encode()
    if path.name.endswith(".gz"):
        data = gzip.compress(data, compresslevel=9, mtime=0)
    check_writable(path)
    write_whole(path, data)
