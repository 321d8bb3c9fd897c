"""The documentation builds as a site, and its reference is that of the API."""

import subprocess
import sys
from pathlib import Path

import pytest

import poolwise
from poolwise import registry

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a broken link, a page outside the menu or a parameter that does not exist is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_all_that_is_registered_stands_in_the_reference(site: Path) -> None:
    for group in registry.GROUPS:
        page = (site / "reference" / "api" / f"{group}.html").read_text(encoding="utf-8")
        assert [name for name in registry.names(group) if f"<code>{name}</code>" not in page] == []


def test_all_that_is_public_stands_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "api" / "python.html").read_text(encoding="utf-8")
    assert [name for name in poolwise.__all__ if name != "__version__" and name not in page] == []
