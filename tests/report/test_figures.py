"""Figures of every kind are drawn, saved, and reproducible."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.presentation.figure import Axis, Bars, Box, Boxes, Curves, Distribution, Figure, Panels, Scatter
from poolwise.presentation.format import format_energy, latency_unit
from poolwise.report.chart import chart
from poolwise.report.chart_parts import SERIES, even_ticks, series_style, tick_positions
from poolwise.report.figures import chart_svg, print_svg, save

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
def test_drawing_a_figure_is_reproducible(shown: Figure, tmp_path: Path) -> None:
    assert chart_svg(shown) == chart_svg(shown)
    (tmp_path / "again").mkdir()
    first, again = save(shown, tmp_path), save(shown, tmp_path / "again")
    assert [path.suffix for path in first] == [".png", ".svg", ".pdf"]
    for file, other in zip(first, again, strict=True):
        assert file.read_bytes() == other.read_bytes()


def test_series_are_distinguishable_without_color() -> None:
    lines, points = series_style([f"series {k}" for k in range(len(SERIES))], legend=True)
    for channel in (lines["strokeDash"], points["shape"]):
        assert len({str(value) for value in channel["scale"]["range"]}) == len(SERIES) >= 6


@pytest.mark.parametrize(
    "shown", [shown for shown in KINDS if isinstance(shown, Curves | Scatter)], ids=lambda shown: shown.name
)
def test_points_and_their_symbols_in_the_legend_have_no_dashes(shown: Figure) -> None:
    symbols = re.findall(r'<g class="mark-symbol .*?</g>', chart_svg(shown))
    assert symbols and not any("stroke-dasharray" in symbol for symbol in symbols)


def luminance(color: str) -> float:
    channels = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("theme", "paper"), [(0, "#ffffff"), (1, "#0f1419")])
def test_series_contrast_with_the_paper(theme: int, paper: str) -> None:
    for pair in SERIES:
        pale, deep = sorted((luminance(pair[theme]), luminance(paper)), reverse=True)
        assert (pale + 0.05) / (deep + 0.05) >= 3.0, "WCAG requires 3 to 1 for graphics"


@pytest.mark.parametrize("groups", [["fcfs", "sjf"], [f"a group with a long name {k}" for k in range(9)]])
def test_bars_have_the_labels_of_their_groups(groups: list[str]) -> None:
    svg = print_svg(Bars("bars", "Bars", groups=groups, series={"a": [1.0] * len(groups)}))
    assert [group for group in groups if f">{group}</text>" not in svg] == []


@pytest.mark.parametrize("shown", KINDS, ids=lambda shown: shown.name)
def test_print_figures_have_light_colors_and_a_width_in_points(shown: Figure) -> None:
    svg = print_svg(shown)
    assert "var(--" not in svg
    assert f'width="{400.0 if isinstance(shown, Panels) else 252.0:.2f}"' in svg


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_even_ticks_enclose_the_values(low: float, span: float) -> None:
    ticks = even_ticks(low, low + span)
    steps = np.diff(ticks)
    slack = 1e-6 * (abs(low) + span)
    assert 2 <= len(ticks) <= 6 and ticks[0] <= low + slack and low + span <= ticks[-1] + slack
    assert np.allclose(steps, steps[0])


@given(st.floats(1e-3, 1e9), st.floats(5.01, 1e6))
def test_logarithmic_axis_ends_at_round_numbers(low: float, factor: float) -> None:
    ticks = tick_positions([low, low * factor], Axis("", log=True))
    assert ticks == sorted(set(ticks)) and ticks[0] <= low and low * factor <= ticks[-1]
    assert all(f"{tick:.0e}"[0] in "125" and float(f"{tick:.0e}") == pytest.approx(tick) for tick in ticks)


def test_text_is_displayed_smaller_than_its_layout() -> None:
    drawn = chart_svg(KINDS[0])
    assert 'font-size="13px"' in drawn and 'font-size="15px"' not in drawn


@pytest.mark.parametrize(
    ("joules", "text"), [(0.0, "0 J"), (1348.0, "1.35 kJ"), (83_004_595.0, "23.1 kWh"), (7.2e9, "2 MWh"), (-2e3, "-2 kJ")]
)
def test_energies_have_a_readable_unit(joules: float, text: str) -> None:
    assert format_energy(joules) == text


def test_latency_axis_has_a_readable_unit() -> None:
    assert [latency_unit(us)[0] for us in (0.0, 900.0, 14_600.0, 32e6, 2e8, 1.3e10, float("nan"))] == [
        "us", "us", "ms", "s", "min", "h", "us",
    ]  # fmt: skip


def test_every_tick_has_its_label() -> None:
    """Labels are looked up by the value of their tick, however many digits it has."""
    ticks = {k * math.pi * 1e3 / 7: f"rack {k}" for k in range(12)}
    box = Box(0.0, 1.0, 0.0, max(ticks), "used", "all")
    shown = Boxes("lanes", "Lanes", "All.", boxes=(box,), series=("used",), x_axis=Axis("time"), y_axis=Axis("", ticks=ticks))
    texts = re.findall(r">([^<>]+)</text>", print_svg(shown))
    assert set(ticks.values()) <= set(texts)


def test_tenth_series_differs_from_those_of_its_color() -> None:
    """After all colors are used, dashes and shapes begin at the next one."""
    names = [f"series {k}" for k in range(2 * len(SERIES))]
    lines, points = series_style(names, legend=True)
    for channels in (lines, points):
        drawn = list(zip(*(map(str, channel["scale"]["range"]) for channel in channels.values()), strict=True))
        assert len(set(drawn)) == len(names)


def test_bars_show_published_marks_and_groups_without_a_bar() -> None:
    shown = Bars(
        "b", "b", "", groups=["a", "b"], series={"s": [60.0, 0.0]}, published={"s": [89.0, np.nan]}, y_axis=Axis("%", log=True)
    )
    encoding = chart(shown)["layer"][0]["encoding"]
    assert encoding["x"]["scale"]["domain"] == [0, 1] and encoding["y"]["scale"]["domain"][1] >= 89


def test_interval_below_zero_ends_at_the_bottom_of_a_logarithmic_axis() -> None:
    shown = Curves(
        "c", "c", "", x=[1, 2], series={"s": [10, 5]}, interval={"s": ([5, -1], [20, 11])}, y_axis=Axis("y", log=True)
    )
    band = chart(shown)["layer"][0]
    assert [row["low"] for row in band["data"]["values"]] == [5.0, band["encoding"]["y"]["scale"]["domain"][0]]
    assert band["mark"]["clip"]
