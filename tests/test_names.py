"""Unique names: public types, shared constants, functions that other modules import, and keys that are options too."""

import ast
import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import poolwise
from poolwise.cli import app as cli
from poolwise.distributions import extension_folders
from poolwise.files.fields import Section
from tests.helpers.syntax import statements

ROOT = Path(poolwise.__file__).parent
FILES = {file.relative_to(ROOT).as_posix(): file for file in ROOT.rglob("*.py")}
FILES |= {
    file.relative_to(folder.parent).as_posix(): file for folder in extension_folders().values() for file in folder.rglob("*.py")
}
SHARED_CONSTANTS = ("NEVER", "Z95", "HORIZON", "OVERDUE")
"""Numbers with one meaning in the whole package."""
PUBLIC = ("poolwise", "poolwise.interfaces", "poolwise.policies")
SAME_CONCEPT = {
    frozenset({"Check", "check"}): "`check` returns a list of `Check`",
    frozenset({"ListScheduler", "list_scheduler"}): "`list_scheduler` builds a `ListScheduler` from registered names",
    frozenset({"Run", "run"}): "a `Run` is a noun of the job model; `run` is the verb of the command `poolwise run`",
}
"""Public names that differ only in case or underscores, and why readers cannot confuse them."""
SAME_WORDS = 0.5
"""Share of common words from which the help of an option and the description of a key describe the same thing."""
OTHER_SPELLING = {("--jobs", "count"): "the key is `jobs.count`: its table has the name of the option"}
FILLERS = {"a", "an", "and", "as", "at", "by", "for", "from", "in", "is", "of", "on", "or", "such", "that", "the", "to", "with"}
CAMEL_CASE = re.compile(r"[A-Z](?=.*[a-z])\w*")


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Parse all files."""
    return {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in FILES.items()}


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
        for node in statements(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                module = node.module.replace(".", "/").removeprefix("poolwise/")
                for alias in node.names:
                    if (f"{module}.py", alias.name) in defined:
                        yield alias.name, f"{module}.py"


def _duplicates(found: Iterator[tuple[str, str]]) -> dict[str, list[str]]:
    files = defaultdict(set)
    for name, file in found:
        files[name.lstrip("_")].add(file)
    return {name: sorted(where) for name, where in files.items() if len(where) > 1}


def test_public_types_have_unique_names(trees: dict[str, ast.Module]) -> None:
    assert _duplicates((name, file) for file, tree in trees.items() for name in types_of(tree)) == {}


def test_shared_constants_are_defined_once(trees: dict[str, ast.Module]) -> None:
    assert _duplicates((name, file) for file, tree in trees.items() for name in constants_of(tree)) == {}


def test_imported_functions_have_unique_names(trees: dict[str, ast.Module]) -> None:
    assert _duplicates(imported_functions(trees)) == {}


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


def public_names() -> Iterator[tuple[str, str, object]]:
    """Yield (name without case and underscores, name, object) of everything that a public package exports."""
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            yield name.replace("_", "").casefold(), name, getattr(module, name)


def test_public_names_have_one_meaning() -> None:
    spellings, objects = defaultdict(set), defaultdict(set)
    for key, name, thing in public_names():
        spellings[key].add(name)
        objects[name].add(id(thing))
    assert {frozenset(names) for names in spellings.values() if len(names) > 1} == set(SAME_CONCEPT)
    assert [name for name, things in objects.items() if len(things) > 1] == []


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z]+", text.casefold())) - FILLERS


def similarity(first: str, second: str) -> float:
    """Return the share of the words of two texts that occur in both."""
    left, right = _words(first), _words(second)
    return len(left & right) / len(left | right) if left and right else 0.0


def options_of(command: Any) -> Iterator[tuple[str, str]]:
    """Yield (long option, help) of a command and of the commands in it."""
    for inner in getattr(command, "commands", {}).values():
        yield from options_of(inner)
    for parameter in command.params:
        yield from ((option, getattr(parameter, "help", "") or "") for option in parameter.opts if option.startswith("--"))


def keys_of(section: type[Section]) -> Iterator[tuple[str, str]]:
    """Yield (key, description) of the sections of files that derive from a section."""
    for inner in section.__subclasses__():
        yield from ((name, field.description or "") for name, field in inner.model_fields.items())
        yield from keys_of(inner)


@pytest.mark.usefixtures("commands")
def test_keys_are_spelled_like_the_options_that_mean_the_same() -> None:
    for package in ("files", "plans", "search", "studies"):
        for module in pkgutil.walk_packages(importlib.import_module(f"poolwise.{package}").__path__, f"poolwise.{package}."):
            importlib.import_module(module.name)
    options, keys = set(options_of(cli.whole_command())), set(keys_of(Section))
    same = {(option, key) for option, help_ in options for key, text in keys if similarity(help_, text) >= SAME_WORDS}
    assert ("--default-runtime", "default_runtime") in same
    different = {(option, key) for option, key in same if key.rstrip("s") != option[2:].replace("-", "_").rstrip("s")}
    assert different == set(OTHER_SPELLING)
