"""Charts of a page: a static picture and the library for the interactive chart, both from one specification.

`vl-convert` ships Vega-Lite in one wheel: it draws without a browser, and its bundle is embedded in the page, so that the page
loads nothing from elsewhere.
"""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape

import vl_convert

from poolwise.presentation.figure import Figure
from poolwise.report.chart import chart
from poolwise.report.chart_parts import TEXT

_LAYOUT_TEXT = 15
"""Font size of the layout, pixels: slightly larger than displayed, because fonts of readers may be wider."""
_ID = re.compile(r"\b(?:clip|gradient_)\d+\b")


def chart_svg(figure: Figure, wide: bool = False) -> str:
    """Return an SVG element that follows the theme of the page; equal figures give equal bytes."""
    svg: str = vl_convert.vegalite_to_svg(json.dumps(chart(figure, wide, _LAYOUT_TEXT)))
    svg = svg.replace(f'font-size="{_LAYOUT_TEXT}px"', f'font-size="{TEXT}px"')
    known: dict[str, str] = {}  # vl-convert numbers ids across pictures; rename them per picture
    renamed = _ID.sub(lambda match: known.setdefault(match[0], f"{figure.name}-{len(known)}"), svg)
    return renamed.replace("<svg ", f'<svg role="img" aria-label="{escape(figure.title)}" ', 1)


def chart_json(figure: Figure, wide: bool = False) -> str:
    """Return the chart as JSON that is safe inside a script element."""
    return json.dumps(chart(figure, wide)).replace("<", "\\u003c")


@cache
def library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")
