"""Build the site of each version at its own URL (`make docs`): results/site/VERSION/, and an index that leads to the newest."""

from __future__ import annotations

import json
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

from poolwise.version import __version__

INDEX = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Poolwise documentation</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<p>Versions: {links}</p></html>
"""


def on_config(config: MkDocsConfig) -> None:
    """Build into a folder named by the version (called by MkDocs)."""
    if Path(config.site_dir).name == "site":
        config.site_dir = str(Path(config.site_dir) / __version__)


def on_post_build(config: MkDocsConfig) -> None:
    """Write `versions.json` and the index next to the built versions (called by MkDocs)."""
    site = Path(config.site_dir).parent
    if site.name != "site":
        return
    versions = sorted(page.parent.name for page in site.glob("*/index.html"))
    (site / "versions.json").write_text(json.dumps({"newest": __version__, "versions": versions}) + "\n", encoding="utf-8")
    links = ", ".join(f'<a href="{version}/index.html">{version}</a>' for version in versions)
    (site / "index.html").write_text(INDEX.format(newest=__version__, links=links), encoding="utf-8")
