"""Rewrite docs/reference/glossary.md from the glossary: `python -m tests.helpers.glossary`."""

from pathlib import Path

from poolwise.presentation.glossary import PAGE, markdown

DOCS = Path(__file__).parents[2] / "docs"

if __name__ == "__main__":
    (DOCS / PAGE).write_text(markdown(), encoding="utf-8")
