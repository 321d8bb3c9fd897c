"""The reproduced papers: what each paper proposes, and its figures and tables in order."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from poolwise_reproductions import catalog


@dataclass(frozen=True)
class PaperItem:
    """A figure or table of a paper.

    Attributes
    ----------
    number, shows : name, such as "Figure 8", and a description of its content
    reason : why we do not reproduce it; empty if we have a figure or table of it
    ours : names of our figures that several items share
    """

    number: str
    shows: str
    reason: str = ""
    ours: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedPaper:
    """A paper: a paragraph that describes it, and its contents.

    Attributes
    ----------
    authors, title, venue : citation
    proposes : what the paper proposes and compares
    printed : which numbers of its figures the text prints
    contents : its figures and tables, in their order
    read_off : inputs that were read off one of its figures; empty if there are none
    """

    authors: str
    title: str
    venue: str
    proposes: str
    printed: str
    contents: Sequence[PaperItem]
    read_off: str = ""

    @property
    def paragraph(self) -> str:
        """Citation and proposal."""
        return f"{self.authors}: {self.title}. {self.venue}. {self.proposes}"


def read_paper(name: str) -> PublishedPaper:
    """Read the description of the paper of a reproduction."""
    content = tomllib.loads(catalog.find("papers", f"{name}.toml").read_text(encoding="utf-8"))
    contents = [PaperItem(**{**item, "ours": tuple(item.get("ours", ()))}) for item in content.pop("contents")]
    proposes = " ".join(content.pop("proposes").split())
    return PublishedPaper(**content, proposes=proposes, contents=contents)


def item_number(artifact: str) -> str:
    """Return the figure or table that contains an artifact as a panel: "Figure 5" for "Figure 5b"."""
    match = re.fullmatch(r"(Figure \d+)[a-z]", artifact)
    return match[1] if match else artifact
