"""One name, one thing: no two public types of one name, shared constants defined once, one function behind an imported name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import poolwise

ROOT = Path(poolwise.__file__).parent
TREES = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in ROOT.rglob("*.py")}
SHARED_CONSTANTS = ("NEVER", "Z95", "HORIZON", "OVERDUE")
"""Numbers that mean the same wherever they are used."""
CAMEL_CASE = re.compile(r"[A-Z](?=.*[a-z])\w*")


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    """Names that a statement of a module assigns, and what."""
    if isinstance(node, ast.Assign):
        yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value


def _is_type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


def types_of(tree: ast.Module) -> Iterator[str]:
    """Public classes of a module and its aliases of types, but for type variables."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        yield from (name for name, value in _assigned(node) if CAMEL_CASE.fullmatch(name) and not _is_type_variable(value))


def constants_of(tree: ast.Module) -> Iterator[str]:
    """Shared constants that a module defines itself, with or without a leading underscore."""
    for node in tree.body:
        yield from (name for name, _ in _assigned(node) if name.lstrip("_") in SHARED_CONSTANTS)


def imported_functions(trees: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """(name, file that defines it) of public functions that another module imports by name.

    The `__init__.py` of a package does not count as another module: it only hands on what the package offers. Steps of kernels
    have short names within their family, and nobody else imports them.
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


def _twice(found: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    files = defaultdict(set)
    for name, file in found:
        files[name.lstrip("_")].add(file)
    return {name: sorted(where) for name, where in files.items() if len(where) > 1}


def test_no_two_public_types_have_one_name() -> None:
    assert _twice((name, file) for file, tree in TREES.items() for name in types_of(tree)) == {}


def test_shared_constants_are_defined_once() -> None:
    assert _twice((name, file) for file, tree in TREES.items() for name in constants_of(tree)) == {}


def test_a_function_name_is_imported_from_one_place() -> None:
    assert _twice(imported_functions(TREES)) == {}


def test_what_is_there_twice_is_found() -> None:
    first = ast.parse("class Layout: ...\nNEVER = 1\ndef run(): ...\nT = TypeVar('T')\nKind = TypeVar('Kind')")
    second = ast.parse("Layout = tuple[int, int]\n_NEVER = 1\nfrom poolwise.a import run\nclass Kind: ...")
    third = ast.parse("def run(): ...")
    fourth = ast.parse("from poolwise.c import run")
    trees = {"a.py": first, "b.py": second, "c.py": third, "d.py": fourth}
    assert _twice((name, file) for file, tree in trees.items() for name in types_of(tree)) == {"Layout": ["a.py", "b.py"]}
    assert _twice((name, file) for file, tree in trees.items() for name in constants_of(tree)) == {"NEVER": ["a.py", "b.py"]}
    assert _twice(imported_functions(trees)) == {"run": ["a.py", "c.py"]}
