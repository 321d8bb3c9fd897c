"""Charts on a page: the static picture, and the library that lets it answer the hand; both from one specification.

`vl-convert` brings Vega-Lite in one wheel: it draws without a browser, and its bundle is embedded in the page, so that nothing
is loaded from elsewhere.
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

_ROOM = 15
"""Letters are laid out a little larger than they are shown: readers' fonts may be wider than the one that lays out."""
_ID = re.compile(r"\b(?:clip|gradient_)\d+\b")


def picture(shown: Figure, wide: bool = False) -> str:
    """Draw as an SVG element that follows the page's theme; the same figure gives the same bytes."""
    drawn: str = vl_convert.vegalite_to_svg(json.dumps(chart(shown, wide, _ROOM)))
    drawn = drawn.replace(f'font-size="{_ROOM}px"', f'font-size="{TEXT}px"')
    known: dict[str, str] = {}  # ids count on from picture to picture; on a page each is this picture's own
    named = _ID.sub(lambda match: known.setdefault(match[0], f"{shown.name}-{len(known)}"), drawn)
    return named.replace("<svg ", f'<svg role="img" aria-label="{escape(shown.title)}" ', 1)


def specification(shown: Figure, wide: bool = False) -> str:
    """The chart as JSON that may stand inside a script element."""
    return json.dumps(chart(shown, wide)).replace("<", "\\u003c")


@cache
def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")
