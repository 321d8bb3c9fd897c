"""Every command and snippet of the documentation runs.

A fenced block `python` is executed (blocks of a page share their names), a `console` block's lines after "$ " are run as
commands, and a block with a title is written to a file of that name first. All of it happens in an empty folder. Commands of
the README are run as processes of their own, as a reader runs them; those of other pages in this process, which saves the
second in which each would start.
"""

import re
import shlex
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from poolwise.cli import app

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def process(words: list[str]) -> tuple[int, str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def in_here(words: list[str]) -> tuple[int, str]:
    """What `poolwise` does, but for the start: warnings are printed, not raised; the command is recorded with results."""
    assert words[0] == "poolwise"
    said = StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("default")
        patch.setattr(sys, "argv", words)
        code = app.run(words[1:])
    return code, said.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    call = process if page.name == "README.md" else in_here
    names: dict[str, object] = {}
    for language, title, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, f"{page.name}", "exec"), names)
        elif language == "console":
            for line in text.splitlines():
                if line.startswith("$ "):
                    code, said = call(shlex.split(line[2:]))
                    assert code == 0, f"{line}\n{said}"


def links(page: Path) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in links(page) if not (page.parent / link).exists()]
    assert not missing
