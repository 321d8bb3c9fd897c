"""Policies written from the documentation alone: the first file of each page is checked, runs and is plotted."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "how-to"
PARTS = {
    "own-queue-order": "order",
    "own-backfill": "backfill",
    "own-placement": "placement",
    "own-scheduler": "scheduler",
    "own-performance-model": "model",
}
"""Page -> argument of `simulate` for the class of its first file."""
PUBLIC = {"poolwise", "poolwise.interfaces", "poolwise.performance", "poolwise.policies", "poolwise.schedulers"}
RUN = """
import sys
import poolwise

sys.path.insert(0, ".")
from {module} import {name}

print(*poolwise.check({name}()), sep="\\n")
machine = poolwise.load_machine("cerit-racks")
workload = poolwise.excerpt(poolwise.read("catalog:cerit-2013.swf.gz", machine), first=0, jobs=300)
run = poolwise.simulate(workload, machine, {argument}={name}())
run.plot("slowdown").save("run.svg")
"""


def first_file(page: str) -> tuple[str, str]:
    """Return name and content of the first file on a page."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    match = re.search(r'^```python title="([^"]+)"\n(.*?)^```', text, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1], match[2]


def imported_modules(code: str) -> set[str]:
    """Return the modules of Poolwise that a file imports from."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(str(node.module))
    return {name for name in modules if name.partition(".")[0] == "poolwise"}


@pytest.mark.long
@pytest.mark.parametrize("page", PARTS)
def test_first_file_of_a_page_is_checked_run_and_plotted(page: str, tmp_path: Path) -> None:
    file, code = first_file(page)
    assert imported_modules(code) <= PUBLIC
    (tmp_path / file).write_text(code, encoding="utf-8")
    name = re.findall(r"^class (\w+)", code, re.MULTILINE)[0]
    script = RUN.format(module=file.removesuffix(".py"), name=name, argument=PARTS[page])
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("failed")] == []
    assert any(line.startswith("ok") for line in lines)
    assert (tmp_path / "run.svg").read_text(encoding="utf-8").startswith("<svg")
