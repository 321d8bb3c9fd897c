"""What a result depends on, written in one way and hashed: content, and the code that made it."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
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


def pretty(content: Json, *, sort: bool = True) -> bytes:
    """Write JSON for people and programs: one line per value, keys sorted unless their order matters."""
    return (json.dumps(content, indent=1, sort_keys=sort, default=str) + "\n").encode()


@lru_cache(maxsize=1)
def sources() -> str:
    """SHA-256 over all Python files of the package: results of other code are other results."""
    root = Path(__file__).parent
    total = hashlib.sha256()
    for file in sorted(root.rglob("*.py"), key=lambda file: file.relative_to(root).as_posix()):
        total.update(f"{file.relative_to(root).as_posix()}\0{digest(file.read_bytes())}\n".encode())
    return total.hexdigest()
