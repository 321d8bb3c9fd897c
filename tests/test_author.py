"""Policies written from the documentation alone: each of the five kinds is checked, run and plotted in one file."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how-to" / "python.md"
FILES = dict(re.findall(r'^```python title="([^"]+)"\n(.*?)^```', PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
PUBLIC = {"poolwise", "poolwise.interfaces", "poolwise.performance", "poolwise.policies", "poolwise.schedulers"}


def imported_modules(code: str) -> set[str]:
    """Return the modules of Poolwise that a file imports from."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
    return {name for name in found if name.partition(".")[0] == "poolwise"}


def test_the_page_has_a_file_for_each_kind() -> None:
    bases = " ".join(FILES.values())
    for base in ("QueuePolicy", "BackfillPolicy", "PlacementPolicy", "Scheduler", "PerformanceModel"):
        assert re.search(rf"^class \w+\({base}\b", bases, re.MULTILINE), base


@pytest.mark.parametrize("name", FILES)
def test_file_is_checked_run_and_plotted(name: str, tmp_path: Path) -> None:
    assert imported_modules(FILES[name]) <= PUBLIC
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", name], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines and [line for line in lines if line.startswith("failed")] == []
    assert any(line.startswith("ok") for line in lines)
    assert (tmp_path / name).with_suffix(".svg").read_text(encoding="utf-8").startswith("<svg")
