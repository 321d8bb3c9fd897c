"""Every command and snippet of the documentation runs.

A fenced block `python` is executed (blocks of a page share their names), a `console` block's lines after "$ " are run as
commands, and a block with a title is written to a file of that name first. All of it happens in an empty folder.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    names: dict[str, object] = {}
    for language, title, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, f"{page.name}", "exec"), names)
        elif language == "console":
            for line in text.splitlines():
                if line.startswith("$ "):
                    done = subprocess.run(shlex.split(line[2:]), capture_output=True, text=True, check=False)
                    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def links(page: Path) -> list[str]:
    return re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in links(page) if not (page.parent / link).exists()]
    assert not missing
