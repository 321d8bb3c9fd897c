"""Every command and code block of the documentation runs, and prints what the pages show.

A titled block is written to a file of that name, a `python` block is executed (blocks of a page share their names), and each
line of a `console` block that begins with "$ " is run as a command; the other lines of the block must appear in its output.
Each page runs in an empty folder. Commands of the README run as processes, as a reader runs them; those of other pages run in
this process, which is faster.
"""

import re
import sys
from pathlib import Path

import pytest

from tests.helpers.page_runner import WIDTH, run_as_process, run_in_process, run_page

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("COLUMNS", WIDTH)
    stale = []
    for command in run_page(page, run_as_process if page.name == "README.md" else run_in_process):
        assert command.code == 0, f"$ {command.line}\n{command.output}"
        assert "deprecated" not in command.output, f"$ {command.line}\n{command.output}"
        stale += [f"$ {command.line}\n  shown on the page, but not printed: {line}" for line in command.stale()]
    assert not stale, "\n".join([*stale, f"`python -m tests.helpers.page_runner {page.relative_to(ROOT)}` updates the page"])


def links(page: Path) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in links(page) if not (page.parent / link).exists()]
    assert not missing
