"""Which files of the package a run can execute, and their hash: what cannot be reached cannot change a result.

A module reaches those that it imports, wherever in it the import stands, those whose full names it has as texts, and, where
it names a group of the registry, whatever is registered there. Modules that import a package's own parts by name reach all of
them. This is read from the text of the files, nothing is imported: too much may be counted in, never too little.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from poolwise.hashing import digest
from poolwise.registry import GROUPS

PACKAGE = Path(__file__).parent

_FROM = re.compile(r"\bfrom (poolwise[\w.]*) import (\([^)]*\)|[^\n]*)")
_IMPORT = re.compile(r"\bimport (poolwise[\w.]+)")
_TEXT = re.compile(r"""["'](poolwise\.[\w.]+)["']""")
_OF_COMMANDS = ("plans", "reproductions")  # groups in which no run looks anything up
_GROUP = re.compile(rf"""["']({"|".join(group for group in GROUPS if group not in _OF_COMMANDS)})["']""")
_OWN_PARTS = re.compile(r"""import_module\(f["']\{__name__\}""")
_REGISTRY = "poolwise.registry"  # it names all groups, and loads only those that others name


@lru_cache(maxsize=64)
def sources(*modules: str, package: Path = PACKAGE) -> str:
    """SHA-256 over the files that these modules of the package can reach: results of other code are other results.

    Without modules, over all Python files.
    """
    files = _reached(modules, package) if modules else frozenset(package.rglob("*.py"))
    total = hashlib.sha256()
    for name, file in sorted((file.relative_to(package).as_posix(), file) for file in files):
        total.update(f"{name}\0{digest(file.read_bytes())}\n".encode())
    return total.hexdigest()


def reached(*modules: str, package: Path = PACKAGE) -> frozenset[str]:
    """Files that these modules can reach, themselves included, relative to the package."""
    return frozenset(file.relative_to(package).as_posix() for file in _reached(modules, package))


def _reached(modules: tuple[str, ...], package: Path) -> frozenset[Path]:
    found: set[Path] = set()
    left = [file for name in modules for file in [_file(name, package)] if file is not None]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left.extend(_next(file, package))
    return frozenset(found)


def _next(file: Path, package: Path) -> Iterator[Path]:
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
        if (there := _file(name, package)) is not None:
            yield there
    for name in {*groups}:
        yield from package.joinpath(*name.split(".")[1:]).glob("*.py")
        yield from package.joinpath(*name.split(".")[1:]).glob("*/__init__.py")
    if _OWN_PARTS.search(text):
        yield from file.parent.rglob("*.py")


def _file(module: str, package: Path) -> Path | None:
    """File of a module; None if there is none of the package."""
    first, *parts = module.split(".")
    if first != "poolwise" or not parts:
        return None
    place = package.joinpath(*parts)
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
