"""Statements of a syntax tree, for tests that read the whole code."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements of a module, function or class, those of nested blocks too, without visiting expressions."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(tree, block, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)
