"""Catalog of shipped machines, schedulers, studies, traces and other files, found by name."""

from __future__ import annotations

import tomllib
from pathlib import Path

from poolwise.errors import UnknownNameError, singular

FOLDER = Path(__file__).parent

PREFIX = "catalog:"
"""Prefix of a reference to a catalog file; valid wherever a path is expected."""


def shipped(kind: str) -> list[tuple[str, str]]:
    """Return the (name, title) pairs of the shipped TOML files of a kind, such as "studies" or "machines", sorted by name."""
    titles = []
    for path in sorted((FOLDER / kind).glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        titles.append((path.stem, str(content.get("title", content.get("name", "")))))
    return titles


def find(kind: str, name: str, *, folder: Path = FOLDER) -> Path:
    """Return the path of a shipped file of a kind, by its name with or without ".toml" or ".csv".

    `folder` is the catalog to search: this catalog, or that of another distribution. Raises UnknownNameError.
    """
    for path in (folder / kind / name, folder / kind / f"{name}.toml", folder / kind / f"{name}.csv"):
        if path.is_file():
            return path
    files = [path for path in (folder / kind).iterdir() if path.is_file()]
    same_suffix = [path for path in files if path.suffix == (Path(name).suffix or ".toml")]
    names = [path.stem if path.suffix == ".toml" else path.name for path in same_suffix or files]
    raise UnknownNameError.of(f"shipped {singular(kind)}", name, names)


def resolve(kind: str, reference: str | Path) -> Path:
    """Return the path of "catalog:NAME" among the shipped files of a kind; return any other reference as a path."""
    name = str(reference)
    return find(kind, name.removeprefix(PREFIX)) if name.startswith(PREFIX) else Path(reference)


def file(kind: str, reference: str | Path) -> Path:
    """Return the path of a file if the reference exists, has a suffix or names a folder, else that of a shipped file."""
    path = Path(reference)
    return path if path.is_file() or path.suffix or len(path.parts) > 1 else find(kind, str(reference))


def machine(reference: str | Path) -> Path:
    """Return the path of a machine: a file, a shipped machine's name, or "catalog:NAME". Raises UnknownNameError."""
    path = Path(reference)
    if path.suffix or path.exists():
        return path
    return find("machines", str(reference).removeprefix(PREFIX))
