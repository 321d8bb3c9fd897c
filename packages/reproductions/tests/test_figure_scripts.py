"""Numbers of a figure as CSV, and their comparison with the recorded ones."""

import math

import numpy as np

from poolwise.presentation.figure import Bars, Curves, Distribution, Panels
from poolwise.presentation.figure_data import figure_csv
from poolwise_reproductions import figure_scripts
from poolwise_reproductions.figure_scripts import compare_figures, scripts_csv, scripts_of
from poolwise_reproductions.reproduction import Reproduced, ReproductionResult

CURVES = Curves(
    "c", "Left", x=[1.0, 2.0], series={"a": [1 / 3, math.nan]}, interval={"a": ([0.1, 0.2], [0.5, 0.6])},
    published={"a": [math.nan, 7.0]}, artifact="Figure 8",
)  # fmt: skip


def test_csv_has_six_digits_and_empty_gaps() -> None:
    assert figure_csv(CURVES).splitlines()[1:] == [",a,1,0.333333,0.1,0.5,", ",a,2,,0.2,0.6,7"]
    bars = Bars("b", "Right", groups=["x"], series={"s": [2.0]}, published={"s": [3.0]})
    assert figure_csv(bars).splitlines()[1:] == [",s,x,2,,,3"]
    both = Panels("p", "Both", panels=[CURVES, bars])
    assert [line.split(",")[0] for line in figure_csv(both).splitlines()[1:]] == ["Left", "Left", "Right"]
    tail = Distribution("d", "Tail", series={"s": np.arange(101.0)}, tail=True)
    assert figure_csv(tail).splitlines()[11] == ",s,10,0.9,,,"


def test_figure_with_other_numbers_is_detected(tmp_path, monkeypatch) -> None:
    def done(figure: Curves) -> Reproduced:
        return Reproduced("paper", "A paper", "An author", [], ReproductionResult({}, figures=[figure]))

    path = tmp_path / "paper.csv"
    path.write_text("figure,command,seconds,sha256\n", encoding="utf-8")
    monkeypatch.setattr(figure_scripts.catalog, "find", lambda kind, name: path)
    assert compare_figures(done(CURVES)) == ["c: not compared, no recorded hash"]
    assert scripts_of(done(CURVES))[0].command == "poolwise reproduce paper --figure 8"
    path.write_text(scripts_csv(scripts_of(done(CURVES))), encoding="utf-8")
    assert compare_figures(done(CURVES)) == ["c: matches the recorded numbers"]
    other = Curves("c", "Left", x=[1.0, 2.0], series={"a": [0.4, math.nan]}, artifact="Figure 8")
    assert compare_figures(done(other)) == ["c: differs from the recorded numbers"]
    times = Curves("c", "Left", x=[1.0], series={"a": [0.4]}, artifact="Figure 8", varies="CPU times")
    assert scripts_of(done(times))[0].sha256 == ""
    assert compare_figures(done(times)) == ["c: not compared, because its numbers are CPU times"]
