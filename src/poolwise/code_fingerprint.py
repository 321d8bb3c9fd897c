"""Fingerprint of the source files that a run can execute; cached results stay valid when unrelated code changes.

A module reaches every module that it imports anywhere, every module whose full name it contains as a string, and, if it names
a registry group, every module registered there. A module that imports its package's submodules by name reaches all of them.
The other distributions of Poolwise are analyzed like the core, so that a case of a reproduction covers the reproduction's code.
The analysis reads source text and imports nothing. It may include too many files but never too few.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from poolwise.distributions import extension_folders
from poolwise.hashing import digest
from poolwise.registry import GROUPS

PACKAGE = Path(__file__).parent

_FROM = re.compile(r"\bfrom (poolwise[\w.]*) import (\([^)]*\)|[^\n]*)")
_IMPORT = re.compile(r"\bimport (poolwise[\w.]+)")
_TEXT = re.compile(r"""["'](poolwise\w*\.[\w.]+)["']""")
_OF_COMMANDS = ("plans", "plots", "reproductions")  # groups that only commands look up, never runs
_GROUP = re.compile(rf"""["']({"|".join(group for group in GROUPS if group not in _OF_COMMANDS)})["']""")
_OWN_PARTS = re.compile(r"""import_module\(f["']\{__name__\}""")
_REGISTRY = "poolwise.registry"  # names all groups, but loads only those that other modules name


@lru_cache(maxsize=64)
def sources(*modules: str, package: Path = PACKAGE) -> str:
    """Return the SHA-256 over all files that these modules can reach.

    Different hashes mean that results may differ. Without modules, all Python files of the core count.
    """
    files = _reached(modules, package) if modules else frozenset(package.rglob("*.py"))
    total = hashlib.sha256()
    for name, file in sorted((_name(file, package), file) for file in files):
        total.update(f"{name}\0{digest(file.read_bytes())}\n".encode())
    return total.hexdigest()


def reached(*modules: str, package: Path = PACKAGE) -> frozenset[str]:
    """Return the files that these modules can reach, including their own.

    Paths of core files are relative to the package; paths of other distributions' files begin with the name of their package.
    """
    return frozenset(_name(file, package) for file in _reached(modules, package))


def _name(file: Path, package: Path) -> str:
    """Return a file's name, which is independent of where the distributions are installed."""
    for name, folder in extension_folders().items():
        if file.is_relative_to(folder):
            return f"{name}/{file.relative_to(folder).as_posix()}"
    return file.relative_to(package).as_posix()


def _reached(modules: tuple[str, ...], package: Path) -> frozenset[Path]:
    names: set[Path] = set()
    left = [file for name in modules for file in [_file(name, package)] if file is not None]
    while left:
        file = left.pop()
        if file not in names:
            names.add(file)
            left.extend(_next(file, package))
    return frozenset(names)


@lru_cache(maxsize=4096)  # most modules reach the same files
def _next(file: Path, package: Path) -> frozenset[Path]:
    """Return the files that the text of a file names."""
    return frozenset(_named(file, package))


def _named(file: Path, package: Path) -> Iterator[Path]:
    text = file.read_text(encoding="utf-8")
    names = [*_IMPORT.findall(text)]
    for name, imported in _FROM.findall(text):
        words = [word.split(" as ")[0].strip() for word in re.sub(r"#[^\n]*|[()]", "", imported).split(",")]
        parts = [f"{name}.{word}" if _file(f"{name}.{word}", package) is not None else name for word in words if word]
        names.extend(parts)
    own = file != _file(_REGISTRY, package)
    groups = [place for group in _GROUP.findall(text) for place in GROUPS[group]] if own else []
    if own:
        names.extend(_TEXT.findall(text))
    for name in {*names}:
        if (target := _file(name, package)) is not None:
            yield target
    for name in {*groups}:
        yield from package.joinpath(*name.split(".")[1:]).glob("*.py")
        yield from package.joinpath(*name.split(".")[1:]).glob("*/__init__.py")
    if _OWN_PARTS.search(text):
        yield from file.parent.rglob("*.py")


def _file(module: str, package: Path) -> Path | None:
    """Return the file of a module, or None if no distribution of Poolwise has such a module."""
    first, *parts = module.split(".")
    root = package if first == "poolwise" else extension_folders().get(first)
    if root is None or not parts:
        return None
    place = root.joinpath(*parts)
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
