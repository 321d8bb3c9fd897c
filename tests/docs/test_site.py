"""The documentation builds as a site without warnings, its internal links resolve, and the reference lists the whole API."""

import os
import posixpath
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import poolwise
from poolwise import registry

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("site")]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors: broken links, pages outside the menu, unknown parameters in docstrings."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # as `make docs` does: it concerns no page
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


@dataclass
class BuiltPage(HTMLParser):
    """Anchors that a page of the site defines, and the addresses to which it refers."""

    anchors: set[str] = field(default_factory=set)
    targets: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.anchors.update(value for value in (values.get("id"), values.get("name")) if value)
        self.targets += [value for value in (values.get("href"), values.get("src")) if value]


def read_site(site: Path) -> dict[str, BuiltPage]:
    """Parse every page of the site, by its path.

    Recorded reports (docs/reproductions/*.html) are copied as they are. They link to files of the folder that they were written
    to, and are left out.
    """
    pages = {}
    for path in sorted(site.rglob("*.html")):
        if (ROOT / "docs" / path.relative_to(site)).exists():
            continue
        page = BuiltPage()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(site).as_posix()] = page
    return pages


def broken_links(site: Path) -> list[str]:
    """List "page -> target" of every internal link whose file or anchor does not exist."""
    pages, broken = read_site(site), []
    for name, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
            path = path.removeprefix("/")
            missing = path != "." and not (site / path).exists()
            anchor = unquote(parts.fragment)
            if missing or (anchor and path in pages and anchor not in pages[path].anchors):
                broken.append(f"{name} -> {target}")
    return broken


def test_internal_links_and_anchors_resolve(site: Path) -> None:
    assert broken_links(site) == []


def test_broken_link_and_anchor_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#top">1</a><a href="#top">2</a><a href="c.html">3</a>')
    (tmp_path / "b.html").write_text('<a href="a.html#top">1</a>')
    assert broken_links(tmp_path) == ["a.html -> b.html#top", "a.html -> c.html"]


def test_every_registered_name_is_in_the_reference(site: Path) -> None:
    for group in registry.GROUPS:
        page = (site / "reference" / "api" / f"{group}.html").read_text(encoding="utf-8")
        assert [name for name in registry.names(group) if f"<code>{name}</code>" not in page] == []


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "api" / "python.html").read_text(encoding="utf-8")
    assert [name for name in poolwise.__all__ if name != "__version__" and name not in page] == []
