"""What is shipped: studies, machines and traces, found by name."""

from __future__ import annotations

import tomllib
from pathlib import Path

from poolwise.errors import UnknownNameError

FOLDER = Path(__file__).parent

PREFIX = "catalog:"
"""Marks a reference to something shipped, wherever a path is taken."""


def shipped(kind: str) -> list[tuple[str, str]]:
    """(name, title) of the shipped "studies" or "machines", sorted."""
    found = []
    for path in sorted((FOLDER / kind).glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        found.append((path.stem, str(content.get("title", content.get("name", "")))))
    return found


def find(kind: str, name: str) -> Path:
    """Path of a shipped "studies" or "machines" file by its name, or of a file in "traces".

    Raises UnknownNameError.
    """
    for path in (FOLDER / kind / name, FOLDER / kind / f"{name}.toml", FOLDER / kind / f"{name}.csv"):
        if path.is_file():
            return path
    files = [path for path in (FOLDER / kind).iterdir() if path.is_file()]
    known = [path.stem if path.suffix == ".toml" else path.name for path in files]
    singular = {"studies": "study", "batches": "batch", "searches": "search"}.get(kind, kind.removesuffix("s"))
    raise UnknownNameError.of(f"shipped {singular}", name, known)


def resolve(kind: str, reference: str | Path) -> Path:
    """Path of "catalog:NAME" among the shipped things of a kind; any other reference is a path already."""
    name = str(reference)
    return find(kind, name.removeprefix(PREFIX)) if name.startswith(PREFIX) else Path(reference)


def machine(reference: str | Path) -> Path:
    """Path of a machine file, or of a shipped machine by its name or as "catalog:NAME"; raises UnknownNameError."""
    path = Path(reference)
    if path.suffix or path.exists():
        return path
    return find("machines", str(reference).removeprefix(PREFIX))
