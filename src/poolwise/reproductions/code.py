"""The code that a measurement rests on, so that what only shows or judges its results can change without it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from poolwise.identity import digest
from poolwise.registry import GROUPS

ROOT = Path(__file__).parents[1]
NOT_MEASURED = ("reproductions", "plans", "methods")
"""Groups of the registry that no simulation looks anything up in."""
BY_NAME = ("poolwise.kernels", "poolwise.engines", "poolwise.optimize", "poolwise.batch.methods")
"""Packages whose modules are also imported by a name that is put together: one that is used counts whole."""
CLAIMS = "reproductions"
"""Folder of the catalog that holds what results are judged by, which no measurement reads."""


@lru_cache(maxsize=8)
def code_behind(module: str) -> str:
    """SHA-256 over all that the measurements of a module can depend on.

    That is the module, every module of the package that it imports, directly or not, those that are found by name, with what
    they import, and the data of the catalog but the claims.
    """
    found = {file.relative_to(ROOT).as_posix(): digest(file.read_bytes()) for file in (*_behind([module]), *_data())}
    return digest("".join(f"{name}\0{content}\n" for name, content in sorted(found.items())))


def _behind(modules: Iterable[str]) -> set[Path]:
    """Files of modules and of all that these import."""
    packages = [package for group, names in GROUPS.items() if group not in NOT_MEASURED for package in names]
    waiting = [*modules, *(name for package in packages for name in _modules(package))]
    found: set[Path] = set()
    while waiting:
        module = waiting.pop()
        file = _file(module)
        if file is not None and file not in found:
            found.add(file)
            waiting += _imports(file)
            waiting += (name for package in BY_NAME if f"{module}.".startswith(f"{package}.") for name in _modules(package))
    return found


def _modules(package: str) -> Iterator[str]:
    """Names of all modules below a package."""
    for file in (ROOT.parent / package.replace(".", "/")).rglob("*.py"):
        yield file.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


def _file(module: str) -> Path | None:
    """File of a module; None for what is none, such as a name in one, and for the package itself, which only lists names."""
    path = ROOT.parent / module.replace(".", "/")
    if not module.startswith(f"{ROOT.name}."):
        return None
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@cache
def _imports(file: Path) -> tuple[str, ...]:
    """Names that a file imports, at any place in it; of "from a import b" both a and a.b, as b may be a module."""
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    return tuple(found)


def _data() -> Iterator[Path]:
    catalog = ROOT / "catalog"
    for file in catalog.rglob("*"):
        inside = file.relative_to(catalog).parts
        if file.is_file() and inside[0] != CLAIMS and "__pycache__" not in inside:
            yield file
