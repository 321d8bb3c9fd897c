"""Figures of every reproduction: points and bars match the claim rows."""

import math

from poolwise.presentation.figure import Bars, Scatter
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.headlines import MIN_POINTS, agreement_figures
from poolwise_reproductions.published import Claim, ClaimRow


def row(number: int, measured: float, as_run: float | None = None, kind: str = "paper", rule: str = "exact") -> ClaimRow:
    claim = Claim("Table 1", f"load {number}", "missed", "%", float(number), rule, 0.5, kind=kind)
    readings = {} if as_run is None else {"as run": Measured(as_run)}
    return ClaimRow(claim, Measured(measured, measured - 0.1, measured + 0.1), readings)


def test_scatter_shows_published_values_and_ours():
    rows = [row(k, k + (3.0 if k < 4 else 0.2)) for k in range(MIN_POINTS)]
    (scatter,) = agreement_figures([*rows, row(90, 1.0, kind="ours"), row(91, math.nan)])
    assert isinstance(scatter, Scatter) and scatter.name == "table-1-percent"
    assert scatter.series["fails"] == ([0.0, 1.0, 2.0, 3.0], [3.0, 4.0, 5.0, 6.0])
    assert len(scatter.series["holds"][0]) == MIN_POINTS - 4 and "undetermined" not in scatter.series
    assert scatter.spread["fails"][2:] == ([2.9, 3.9, 4.9, 5.9], [3.1, 4.1, 5.1, 6.1])
    assert agreement_figures(rows[1:]) == []


def test_bars_show_the_share_of_claims_that_hold_per_reading():
    rows = [row(1, 1.0, 5.0), row(2, 9.0, 2.0), row(3, 3.0), row(4, 9.0), row(5, math.nan)]
    (bars,) = agreement_figures(rows)
    assert isinstance(bars, Bars) and list(bars.groups) == ["Table 1"] and "Table 1 4." in bars.caption
    assert bars.series == {"spec": [50.0], "as run": [50.0]}
    (turned,) = agreement_figures([*rows, row(6, 9.0, 6.0)])
    assert turned.series == {"spec": [40.0], "as run": [60.0]}
