"""The HTML page of all answers: one file without network access, for light and dark screens and for print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from poolwise.atomic_write import write_whole
from poolwise.presentation.answer import Answer
from poolwise.presentation.glossary import ADDRESS, glossary, terms_in
from poolwise.report.chart_parts import style_sheet
from poolwise.report.figures import chart_json, chart_svg, library

_HIDDEN = re.compile(r"<(script|style|svg)\b.*?</\1>|<[^>]*>", re.DOTALL)
"""Parts of a page that are not prose: markup, and the text in figures."""


def render(answer: Answer) -> str:
    """Render the HTML. Apart from the provenance, equal answers give equal bytes."""
    environment = Environment(
        loader=PackageLoader("poolwise.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    body = environment.get_template("answer.html.j2").render(
        page=answer,
        drawn={shown.name: (chart_svg(shown, wide), chart_json(shown, wide)) for shown, wide in answer.charts},
    )
    return environment.get_template("page.html.j2").render(
        page=answer,
        body=body,
        terms=_terms(body),
        glossary=ADDRESS,
        style=style_sheet(),
        library=library() if answer.charts else "",
    )


def _terms(body: str) -> Mapping[str, str]:
    """Return the terms of the glossary that occur in the text of a page, with their definitions."""
    return {term: glossary()[term] for term in terms_in(unescape(_HIDDEN.sub(" ", body)))}


def write_report(answer: Answer, path: Path) -> None:
    """Write the page of an answer atomically."""
    write_whole(path, render(answer).encode())
