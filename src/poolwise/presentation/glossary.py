"""Glossary: every term that users meet, defined once in `glossary.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

PAGE = "reference/glossary.md"
"""Page of the documentation that lists all terms."""
ADDRESS = f"https://github.com/poolwise/poolwise/tree/main/docs/{PAGE}"
"""Address of that page."""


@cache
def glossary() -> Mapping[str, str]:
    """Return term -> definition, sorted without regard to case."""
    text = files("poolwise.presentation").joinpath("glossary.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)
    return {term: str(entries[term]["definition"]) for term in sorted(entries, key=str.casefold)}


def terms_in(text: str) -> list[str]:
    """Return the terms that occur in a text as whole words, plural included, in the order of the glossary."""
    return [term for term in glossary() if re.search(rf"\b{re.escape(term)}s?\b", text, re.IGNORECASE)]


def anchor(term: str) -> str:
    """Return the fragment of a term on the glossary page."""
    return re.sub(r"\W+", "-", term.casefold()).strip("-")


def markdown() -> str:
    """Return the glossary page."""
    lines = ["# Glossary", "", "Each term names one thing, in the documentation, in reports and in the code.", ""]
    for term, definition in glossary().items():
        lines += [f'<a id="{anchor(term)}"></a>**{term}**', f":   {definition}", ""]
    return "\n".join(lines[:-1]) + "\n"
