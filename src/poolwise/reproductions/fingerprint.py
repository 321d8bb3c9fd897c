"""The code and shipped data that a measurement rests on: what only shows or judges its results can change without it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from poolwise.code_fingerprint import PACKAGE, sources
from poolwise.hashing import canonical, digest

CLAIMS = "reproductions"
"""Folder of the catalog that holds what results are judged by, which no measurement reads."""


@lru_cache(maxsize=8)
def code_behind(module: str, package: Path = PACKAGE) -> str:
    """SHA-256 over the code that the measurements of a module can reach, and the data of the catalog but the claims."""
    catalog, data = package / "catalog", {}
    for file in sorted(catalog.rglob("*")):
        inside = file.relative_to(catalog).parts
        if file.is_file() and inside[0] != CLAIMS and "__pycache__" not in inside:
            data["/".join(inside)] = digest(file.read_bytes())
    return digest(canonical({"sources": sources(module, package=package), "data": data}))
