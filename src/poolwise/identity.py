"""What a result depends on, written in one way and hashed."""

from __future__ import annotations

import hashlib
import json
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
