"""Functions and data classes take workload, machine and scheduler in this order."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.syntax import statements

ROOT = Path(__file__).parents[1]
FILES = [*ROOT.glob("src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py")]
ORDER = ("workload", "machine", "scheduler")
TABLES = {"RunFile", "WorkloadsSection"}
"""Tables of TOML files, whose fields are given by name: a machine comes first there."""


def misordered(code: str) -> Iterator[str]:
    """Yield the names of functions, and of classes with fields, that have some of `ORDER` in another order."""
    if sum(name in code for name in ORDER) < 2:
        return
    for node in statements(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        elif isinstance(node, ast.ClassDef):
            names = [
                part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            ]
        else:
            continue
        ordered = [name for name in names if name in ORDER]
        if ordered != sorted(ordered, key=ORDER.index):
            yield node.name


def test_arguments_have_one_order() -> None:
    functions = {name for file in FILES for name in misordered(file.read_text(encoding="utf-8"))}
    assert functions == TABLES


def test_another_order_would_be_found() -> None:
    methods = "def run(machine, workload): ...\ndef place(workload, scheduler): ..."
    code = f"{methods}\nclass Spec:\n    scheduler: int\n    machine: int"
    assert [*misordered(code)] == ["run", "Spec"]
