"""What a result depends on, written in one way and hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]


def canonical(content: Any) -> str:
    """Write JSON in the one way that is hashed: keys sorted, no spaces."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def digest(content: bytes | str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def plain(content: Json) -> Json:
    """Content as it is read from canonical JSON: keys sorted, tuples as lists."""
    found: Json = json.loads(canonical(content))
    return found


def pretty_parts(content: Mapping[str, Any]) -> Iterator[bytes]:
    """Write an object as `pretty` does without sorting, in parts; values that are iterators are lists that are never whole."""
    before = "{"
    for name, value in content.items():
        yield f"{before}\n {json.dumps(name)}: ".encode()
        before = ","
        if not isinstance(value, Iterator):
            yield _within(value, 1)
            continue
        begin, end = "[\n  ", "[]"
        for item in value:
            yield begin.encode() + _within(item, 2)
            begin, end = ",\n  ", "\n ]"
        yield end.encode()
    yield b"\n}\n" if content else b"{}\n"


def _within(value: Any, depth: int) -> bytes:
    """A value as it stands so deep within others; a text has no line break in JSON."""
    return json.dumps(value, indent=1, default=str).replace("\n", "\n" + depth * " ").encode()


def pretty(content: Json, *, sort: bool = True) -> bytes:
    """Write JSON for people and programs: one line per value, keys sorted unless their order matters."""
    return (json.dumps(content, indent=1, sort_keys=sort, default=str) + "\n").encode()
