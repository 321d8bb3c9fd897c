"""Imports run in no circle, those for type checking included, and none is hidden in text."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from poolwise.distributions import DISTRIBUTIONS, extension_folders

FOLDERS = {"poolwise": Path(__file__).parents[1] / "src" / "poolwise", **extension_folders()}
"""Package of each distribution -> its folder."""


@cache
def graph() -> grimp.ImportGraph:
    """Return the imports of all distributions."""
    return grimp.build_graph(*FOLDERS, cache_dir=None)


def order(edges: dict[str, set[str]]) -> list[str]:
    """Modules in an order in which each comes after all that it imports; raises CycleError."""
    return list(TopologicalSorter(edges).static_order())


def test_no_module_imports_itself_by_way_of_others() -> None:
    edges = {module: graph().find_modules_directly_imported_by(module) for module in graph().modules}
    assert len(order(edges)) == len(graph().modules) > 400


def test_a_circle_would_be_found() -> None:
    with pytest.raises(CycleError):
        order({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def test_core_imports_no_other_distribution() -> None:
    assert {*FOLDERS} == {"poolwise", *DISTRIBUTIONS}
    core = {module for module in graph().modules if module.partition(".")[0] == "poolwise"}
    imported = {name.partition(".")[0] for module in core for name in graph().find_modules_directly_imported_by(module)}
    assert imported == {"poolwise"}


IMPORTERS = {
    "registry.py": "finds registered classes by name",
    "lazy_exports.py": "imports the names in the stub of a package when they are first used",
    "cli/app.py": "imports every file of its own package: one file per command",
    "kernels/jit.py": "imports Numba's internals only when a kernel is compiled",
}
"""Files that import modules of Poolwise by text -> why."""


def text_imports(code: str) -> Iterator[str]:
    """Yield the arguments of calls that import a module by its name; a constant name of another package is left out."""
    if "import_module" not in code and "__import__" not in code:
        return
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and node.args:
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            argument = node.args[0]
            foreign = isinstance(argument, ast.Constant) and str(argument.value).partition(".")[0] not in FOLDERS
            if function in ("import_module", "__import__") and not foreign:
                yield ast.unparse(argument)


def test_modules_are_imported_by_text_only_where_it_is_justified() -> None:
    importers = {
        file.relative_to(folder).as_posix(): [*text_imports(file.read_text("utf-8"))]
        for folder in FOLDERS.values()
        for file in folder.rglob("*.py")
    }
    assert {name for name, arguments in importers.items() if arguments} == {*IMPORTERS}


def test_an_import_by_text_would_be_found() -> None:
    code = "importlib.import_module('poolwise.report')\n__import__(name)\nimport_module('numpy')"
    assert [*text_imports(code)] == ["'poolwise.report'", "name"]
