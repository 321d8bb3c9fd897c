"""Code in the documentation imports only the public interface of Poolwise."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import poolwise
from poolwise import interfaces, performance, policies, schedulers

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ *```(?:python|py)\b[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
OFFERED = {module.__name__: module.__all__ for module in (poolwise, interfaces, performance, policies, schedulers)}


def imports(code: str) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of every import from Poolwise, an empty name for the module itself."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "poolwise")
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "poolwise":
            yield from ((str(node.module), alias.name) for alias in node.names)


def violations(text: str) -> list[str]:
    """Return the imports in the Python blocks of a page that are not public."""
    names = [pair for block in BLOCK.findall(text) for pair in imports(block)]
    return [f"{module}: {name}" for module, name in names if module not in OFFERED or name not in ("", *OFFERED[module])]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_imports_only_public_names(page: Path) -> None:
    assert violations(page.read_text(encoding="utf-8")) == []


def test_compatibility_page_lists_the_public_modules() -> None:
    page = (ROOT / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(poolwise[.\w]*)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted({*OFFERED, "poolwise.conformance"})


def test_a_private_import_is_found() -> None:
    page = "```python\nfrom poolwise.model import Job\nfrom poolwise import read, nothing\nimport poolwise.engines\n```\n"
    assert violations(page) == ["poolwise.model: Job", "poolwise: nothing", "poolwise.engines: "]
