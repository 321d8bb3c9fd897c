"""Fingerprint of the code and catalog data that a measurement depends on; claims and reports are excluded."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from poolwise.code_fingerprint import PACKAGE, sources
from poolwise.hashing import canonical, digest

CLAIMS = "reproductions"
"""Folder of the catalog that holds the claims; no measurement reads it."""


@lru_cache(maxsize=8)
def measurement_fingerprint(module: str, package: Path = PACKAGE) -> str:
    """Return the SHA-256 of the code that a module can reach and of all catalog data except the claims."""
    catalog, data = package / "catalog", {}
    for file in sorted(catalog.rglob("*")):
        inside = file.relative_to(catalog).parts
        if file.is_file() and inside[0] != CLAIMS and "__pycache__" not in inside:
            data["/".join(inside)] = digest(file.read_bytes())
    return digest(canonical({"sources": sources(module, package=package), "data": data}))
