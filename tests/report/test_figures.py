"""Figures of every kind are drawn, saved whole, and the same each time."""

from pathlib import Path

import matplotlib.figure
import numpy as np
import pytest

from poolwise.exhibits.figure import Axis, Bars, Curves, Distribution, Figure, Panels, Scatter
from poolwise.report.figures import _bars, save
from poolwise.report.picture import picture
from poolwise.report.theme import DASHES, MARKERS, SERIES

KINDS: list[Figure] = [
    Curves(
        "curves", "Curves", x=[1.0, 2.0, 4.0], series={"a": [1.0, np.nan, 3.0], "b": [3.0, 2.0, 1.0]},
        interval={"b": ([2.0, 1.0, 0.5], [4.0, 3.0, 1.5])}, published={"a": [1.1, 2.1, 3.1]},
        x_axis=Axis("size (GiB)", log=True, ticks={1.0: "1", 2.0: "2", 4.0: "4"}),
        y_axis=Axis("time (s)", log=True), highlight=2.0,
    ),
    Scatter("scatter", "Scatter", series={"a": ([1.0], [2.0])}, spread={"a": ([0.5], [1.5], [1.0], [3.0])}),
    Distribution("tail", "Tail", series={"a": np.arange(1.0, 900.0)}, x_axis=Axis("slowdown", log=True), tail=True),
    Distribution("cdf", "CDF", series={"a": np.arange(1.0, 90.0)}),
    Bars("bars", "Bars", groups=["x", "y"], series={"a": [1.0, 2.0], "b": [2.0, 1.0]}, published={"a": [1.5, 1.5]}),
]  # fmt: skip
KINDS.append(Panels("panels", "Panels", panels=KINDS[:3]))


@pytest.mark.long
@pytest.mark.parametrize("shown", KINDS, ids=lambda shown: shown.name)
def test_a_figure_is_drawn_the_same_each_time(shown: Figure, tmp_path: Path) -> None:
    assert picture(shown) == picture(shown)
    (tmp_path / "again").mkdir()
    first, again = save(shown, tmp_path), save(shown, tmp_path / "again")
    assert [path.suffix for path in first] == [".png", ".svg", ".pdf"]
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_series_can_be_told_apart_without_colour() -> None:
    assert len(set(MARKERS)) == len(MARKERS) >= 6
    assert len(set(DASHES)) == len(DASHES) >= 6


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "paper"), [(0, "#ffffff"), (1, "#0f1419")])
def test_series_stand_out_from_the_paper(theme: int, paper: str) -> None:
    for pair in SERIES:
        pale, deep = sorted((luminance(pair[theme]), luminance(paper)), reverse=True)
        assert (pale + 0.05) / (deep + 0.05) >= 3.0, "WCAG asks for 3 to 1 in graphics"


@pytest.mark.parametrize("groups", [["fcfs", "sjf"], [f"a group with a long name {k}" for k in range(9)]])
def test_bars_stand_over_the_names_of_their_groups(groups: list[str]) -> None:
    drawn = matplotlib.figure.Figure()
    axes = drawn.subplots()
    _bars(Bars("bars", "Bars", groups=groups, series={"a": [1.0] * len(groups)}), axes)
    drawn.canvas.draw()
    assert [label.get_text() for label in axes.get_xticklabels()] == groups
