"""Fill the page on live tests with `benchmarks/results/live.json` while the site is built; old outcomes are marked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from poolwise.version import __version__

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "live.json"
PLACE = "<!-- live results -->"
"""Line of the page that the table replaces."""
MONTH = timedelta(days=31)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Insert the table (called by MkDocs)."""
    return markdown.replace(PLACE, table(json.loads(RESULTS.read_text()), date.today())) if PLACE in markdown else markdown


def table(tests: Mapping[str, Mapping[str, Any]], today: date) -> str:
    """Return a Markdown table for each file, release and set of versions; outcomes are old after a month or another release."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, entry in tests.items():
        file, _, function = name.partition("::")
        stale = today - date.fromisoformat(entry["date"]) > MONTH or entry["release"] != __version__
        outcome = f"{entry['outcome']}: {entry['reason']}" if "reason" in entry else entry["outcome"]
        versions = ", ".join(f"{server.capitalize()} {version}" for server, version in entry["versions"].items())
        passes = entry.get("passed_in_a_row", int(entry["outcome"] == "passed"))
        day = f"{entry['date']} **(old)**" if stale else entry["date"]
        words = function.removeprefix("test_").replace("_", " ")
        row = f"| {words} | {outcome} | {passes} | {entry['seconds']:g} | {day} |"
        groups.setdefault((file, f"release {entry['release']}, {versions}"), []).append(row)
    head = "| test | outcome | passed in a row | time (s) | date |\n|---|---|---|---|---|"
    return "\n\n".join("\n".join([f"`{file}` ({made_with}):\n", head, *rows]) for (file, made_with), rows in groups.items())
