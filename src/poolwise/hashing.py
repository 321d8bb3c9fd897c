"""Canonical JSON and its hashes, which identify everything that a result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]


def canonical(content: Any) -> str:
    """Return canonical JSON for hashing: sorted keys, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def digest(content: bytes | str) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def plain(content: Json) -> Json:
    """Return the content after a round trip through canonical JSON: keys sorted, tuples as lists."""
    normalized: Json = json.loads(canonical(content))
    return normalized


def pretty_parts(content: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the bytes of `pretty(content, sort=False)` in parts; an iterator is written as a list, one item at a time."""
    before = "{"
    for name, value in content.items():
        yield f"{before}\n {json.dumps(name)}: ".encode()
        before = ","
        if not isinstance(value, Iterator):
            yield _nested(value, 1)
            continue
        begin, end = "[\n  ", "[]"
        for item in value:
            yield begin.encode() + _nested(item, 2)
            begin, end = ",\n  ", "\n ]"
        yield end.encode()
    yield b"\n}\n" if content else b"{}\n"


def _nested(value: Any, depth: int) -> bytes:
    """Return the JSON of a value indented by `depth`; JSON strings contain no raw line breaks."""
    return json.dumps(value, indent=1, default=str).replace("\n", "\n" + depth * " ").encode()


def pretty(content: Json, *, sort: bool = True) -> bytes:
    """Return readable JSON: one value per line, keys sorted unless `sort` is false."""
    return (json.dumps(content, indent=1, sort_keys=sort, default=str) + "\n").encode()
