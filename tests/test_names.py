"""Unique names: public types, shared constants, and functions that other modules import."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import poolwise

ROOT = Path(poolwise.__file__).parent
TREES = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in ROOT.rglob("*.py")}
SHARED_CONSTANTS = ("NEVER", "Z95", "HORIZON", "OVERDUE")
"""Numbers with one meaning in the whole package."""
CAMEL_CASE = re.compile(r"[A-Z](?=.*[a-z])\w*")


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that a statement assigns, with their values."""
    if isinstance(node, ast.Assign):
        yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value


def _is_type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


def types_of(tree: ast.Module) -> Iterator[str]:
    """Yield public classes and type aliases of a module, without type variables."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        yield from (name for name, value in _assigned(node) if CAMEL_CASE.fullmatch(name) and not _is_type_variable(value))


def constants_of(tree: ast.Module) -> Iterator[str]:
    """Yield the shared constants that a module defines, with or without a leading underscore."""
    for node in tree.body:
        yield from (name for name, _ in _assigned(node) if name.lstrip("_") in SHARED_CONSTANTS)


def imported_functions(trees: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield (name, defining file) of public functions that another module imports by name.

    Imports in the `__init__.py` of a package do not count: they only re-export. Neither do kernels, whose short names are
    unique within their family only.
    """
    defined = {
        (file, node.name)
        for file, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not file.startswith("kernels/")
    }
    for file, tree in trees.items():
        if file.endswith("__init__.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                module = node.module.removeprefix("poolwise").lstrip(".").replace(".", "/")
                for alias in node.names:
                    if (f"{module}.py", alias.name) in defined:
                        yield alias.name, f"{module}.py"


def _duplicates(found: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    files = defaultdict(set)
    for name, file in found:
        files[name.lstrip("_")].add(file)
    return {name: sorted(where) for name, where in files.items() if len(where) > 1}


def test_public_types_have_unique_names() -> None:
    assert _duplicates((name, file) for file, tree in TREES.items() for name in types_of(tree)) == {}


def test_shared_constants_are_defined_once() -> None:
    assert _duplicates((name, file) for file, tree in TREES.items() for name in constants_of(tree)) == {}


def test_imported_functions_have_unique_names() -> None:
    assert _duplicates(imported_functions(TREES)) == {}


def test_duplicates_are_found() -> None:
    first = ast.parse("class Layout: ...\nNEVER = 1\ndef run(): ...\nT = TypeVar('T')\nKind = TypeVar('Kind')")
    second = ast.parse("Layout = tuple[int, int]\n_NEVER = 1\nfrom poolwise.a import run\nclass Kind: ...")
    third = ast.parse("def run(): ...")
    fourth = ast.parse("from poolwise.c import run")
    trees = {"a.py": first, "b.py": second, "c.py": third, "d.py": fourth}
    types = [(name, file) for file, tree in trees.items() for name in types_of(tree)]
    constants = [(name, file) for file, tree in trees.items() for name in constants_of(tree)]
    assert _duplicates(iter(types)) == {"Layout": ["a.py", "b.py"]}
    assert _duplicates(iter(constants)) == {"NEVER": ["a.py", "b.py"]}
    assert _duplicates(imported_functions(trees)) == {"run": ["a.py", "c.py"]}
