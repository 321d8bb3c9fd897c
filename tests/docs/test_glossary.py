"""The glossary: the page follows the data, and links lead to terms that exist."""

import re
import tomllib
from pathlib import Path

from poolwise.presentation.glossary import ADDRESS, PAGE, anchor, glossary, markdown, terms_in

DOCS = Path(__file__).parents[2] / "docs"


def test_page_matches_glossary() -> None:
    assert (DOCS / PAGE).read_text(encoding="utf-8") == markdown()


def test_address_of_the_page_is_that_of_the_documentation() -> None:
    urls = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert f"{urls['Documentation']}/{PAGE}" == ADDRESS


def test_anchors_are_unique() -> None:
    assert len({anchor(term) for term in glossary()}) == len(glossary())


def test_definitions_are_sentences() -> None:
    assert all(definition.endswith(".") for definition in glossary().values())


def test_links_to_glossary_lead_to_terms() -> None:
    anchors = {anchor(term) for term in glossary()}
    links = [
        (page.name, target)
        for page in DOCS.rglob("*.md")
        for target in re.findall(r"glossary\.md#([\w-]+)", page.read_text(encoding="utf-8"))
    ]
    assert [link for link in links if link[1] not in anchors] == []


def test_terms_are_found_as_whole_words() -> None:
    assert terms_in("Two pools, one head of the queue.") == ["head of the queue", "pool"]
