"""Charts as pictures: on a page, in the colors of its theme, and for print, as PNG, SVG and PDF in light colors."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from pathlib import Path

import vl_convert

from poolwise.presentation.figure import Boxes, Curves, Figure, Panels, VegaChart
from poolwise.report.chart import chart
from poolwise.report.chart_parts import LIGHT, TEXT

_LAYOUT_TEXT = 15
"""Font size of the layout, pixels: slightly larger than displayed, because fonts of readers may be wider."""
_ID = re.compile(r"\b(?:clip|gradient_)\d+\b")


def chart_svg(figure: Figure, wide: bool = False) -> str:
    """Return an SVG element that follows the theme of the page; equal figures give equal bytes."""
    svg: str = vl_convert.vegalite_to_svg(json.dumps(chart(figure, wide, _LAYOUT_TEXT)))
    svg = svg.replace(f'font-size="{_LAYOUT_TEXT}px"', f'font-size="{TEXT}px"')
    return _with_own_ids(svg, figure).replace("<svg ", f'<svg role="img" aria-label="{escape(figure.title)}" ', 1)


def _with_own_ids(svg: str, figure: Figure) -> str:
    """Rename ids per picture, since vl-convert numbers them across pictures."""
    ids: dict[str, str] = {}
    return _ID.sub(lambda match: ids.setdefault(match[0], f"{figure.name}-{len(ids)}"), svg)


def chart_json(figure: Figure, wide: bool = False) -> str:
    """Return the chart as JSON that is safe inside a script element."""
    return json.dumps(chart(figure, wide)).replace("<", "\\u003c")


@cache
def library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def load_renderer() -> None:
    """Load the chart library and draw a small chart, so that the first report does not wait for them."""
    library()
    encoding = {"x": {"field": "x", "type": "quantitative", "title": "x"}}
    vl_convert.vegalite_to_svg({"data": {"values": [{"x": 1}]}, "mark": "bar", "encoding": encoding})


FORMATS = ("png", "svg", "pdf")
COLUMN_PT, PAGE_PT, PANEL_PT = 252.0, 504.0, 200.0
"""Widths in points (1/72 inch) of a single figure, of a time line, and of one panel."""
PPI = 300.0
"""Resolution of PNG files, pixels per inch."""
_TIMELINE_TEXT = 18
"""Font size of time lines, pixels: they are scaled down most."""
_VARIABLE = re.compile(r"var\(--([\w-]+)\)")
_STREAM = re.compile(rb"(\nstream\n.*?\nendstream)", re.DOTALL)
_ENTRY = re.compile(rb"\n +/\w+ \d+ 0 R")
_ENTRIES = re.compile(rb"(?:\n +/\w+ \d+ 0 R){2,}")
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')


def save(figure: Figure, folder: Path) -> list[Path]:
    """Write PNG, SVG and PDF on white; equal figures give equal bytes."""
    paths = [folder / f"{figure.name}.{kind}" for kind in FORMATS]
    for kind, path in zip(FORMATS, paths, strict=True):
        write_figure(figure, kind, path)
    return paths


def write_figure(figure: Figure, kind: str, file: Path) -> None:
    """Write a figure in one format ("png", "svg" or "pdf") to a file."""
    svg = print_svg(figure)
    if kind == "svg":
        file.write_text(svg, encoding="utf-8")
    else:
        file.write_bytes(vl_convert.svg_to_png(svg, ppi=PPI) if kind == "png" else _sorted(vl_convert.svg_to_pdf(svg)))


def _sorted(pdf: bytes) -> bytes:
    """Sort the entries of resource dictionaries, whose order differs from conversion to conversion; no offset changes."""
    parts = _STREAM.split(pdf)
    parts[::2] = [_ENTRIES.sub(lambda match: b"".join(sorted(_ENTRY.findall(match[0]))), part) for part in parts[::2]]
    return b"".join(parts)


def print_svg(figure: Figure) -> str:
    """Return a figure as SVG with light colors on white, with its width in points."""
    spec = chart(figure, wide=_is_wide(figure), text=_TIMELINE_TEXT if isinstance(figure, Boxes) else TEXT)
    svg = _with_own_ids(vl_convert.vegalite_to_svg(json.dumps({**_light(spec), "background": "white"})), figure)
    width, height = (float(size) for size in _SIZE.search(svg).groups())  # type: ignore[union-attr]  # every SVG states it
    factor = _width_pt(figure) / width
    return _SIZE.sub(f'width="{width * factor:.2f}" height="{height * factor:.2f}"', svg, count=1)


def _light(spec: dict[str, object]) -> dict[str, object]:
    """Replace the color variables of the page by light colors, and bold text by regular text: a PDF then embeds one font."""
    text = _VARIABLE.sub(lambda match: LIGHT[match[1]], json.dumps(spec)).replace('"fontWeight": 600', '"fontWeight": 500')
    light: dict[str, object] = json.loads(text)
    return light


def _is_wide(figure: Figure) -> bool:
    return isinstance(figure, Boxes) or (isinstance(figure, Curves) and figure.direct)


def _width_pt(figure: Figure) -> float:
    if isinstance(figure, Panels):
        return PANEL_PT * min(figure.columns, len(figure.panels))
    if isinstance(figure, VegaChart) and figure.columns:
        return PANEL_PT * min(figure.columns, len(figure.spec["concat"]))
    return PAGE_PT if isinstance(figure, Boxes) else COLUMN_PT
