"""Sentences about machines and policies agree with the numbers of each seed."""

import re
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student  # type: ignore[import-untyped]

from poolwise.metrics.resource_use import ResourceUse
from poolwise.report.decision_card import _certainty
from poolwise.report.resources import GOAL, CombinationResult, because, lead, standings, table
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult
from poolwise.studies.resources import Resources


def standing(machine: str, policies: str, slowdowns: list[float]) -> CombinationResult:
    cells = [
        CellResult({}, seed, f"{machine}{policies}{seed}", {GOAL: value}, 9, {}, {}, {}, 0, "test", np.nan, np.nan)
        for seed, value in enumerate(slowdowns)
    ]
    return CombinationResult(f"{machine}, {policies}", machine, cells, [Resources({}, np.nan, np.nan)] * len(cells))


def distinguishable(one: list[float], best: list[float]) -> bool:
    """Return whether Student's interval (95 %) of the paired difference is above zero."""
    gaps = np.subtract(one, best)
    half = student.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return bool(gaps.mean() - half > 0)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 3, 5]), st.sampled_from([0.01, 1.0]))
def test_recommendation_names_all_indistinguishable_combinations(seed, machines, policies, seeds, noise) -> None:
    rng = np.random.default_rng(seed)
    base = rng.uniform(1, 3, seeds)
    drawn = [
        (f"m{m}", f"p{p}", (base + rng.uniform(0, 1) + noise * rng.normal(size=seeds)).tolist())
        for m in range(machines) for p in range(policies)
    ]  # fmt: skip
    drawn.sort(key=lambda one: np.mean(one[2]))
    ranked = [standing(*values) for values in drawn]
    alike = [f"{p} on {m}" for m, p, values in drawn[1:] if seeds > 1 and not distinguishable(values, drawn[0][2])]
    assert lead(ranked) == f"Run {drawn[0][1]} on {drawn[0][0]}."
    lines = because(ranked)
    named = [match[1] for line in lines if (match := re.search(r"from that of (.+?)\.", line))]
    shown = [*alike[:2], *([f"{len(alike) - 2} more"] if len(alike) > 2 else [])]
    assert [re.split(r", | or ", names) for names in named] == ([shown] if alike else [])
    for line in lines[2:]:
        policy, machine = re.search(r": (p\d), with", line)[1], re.search(r"Best on (m\d)", line)
        values = next(v for m, p, v in drawn if p == policy and m == (machine[1] if machine else drawn[0][0]))
        assert ("excludes zero" in line) == (seeds > 1 and distinguishable(values, drawn[0][2]))
        assert ("not distinguishable" in line) == (seeds > 1 and not distinguishable(values, drawn[0][2]))
    certainty = _certainty(ranked).text
    assert ("only one combination" in certainty) == (len(ranked) == 1)
    assert ("better than all" in certainty) == (len(ranked) > 1 and seeds > 1 and not alike)
    assert (f"not distinguishable from {len(alike)} of {len(ranked) - 1} " in certainty) == bool(alike)
    assert ("unknown" in certainty) == (len(ranked) > 1 and seeds == 1)


def test_fairest_of_the_indistinguishable_policies_of_a_machine_come_first(monkeypatch) -> None:
    """SJF and WFP3 on the same machine are not distinguishable; another machine is not chosen for its fairness."""
    slowdowns = {
        "sjf on a": (1.0, 2.0, 3.0),
        "wfp3 on a": (1.3, 1.8, 3.1),
        "fm on b": (1.2, 2.1, 3.0),
        "fcfs on a": (9.0, 9.1, 9.2),
    }
    added = {"sjf on a": 658.0, "wfp3 on a": 98.0, "fm on b": 1.0, "fcfs on a": 0.0}
    cells = {
        (name, 0): [
            CellResult({"machine": name[-1]}, k, f"{name}{k}", {GOAL: value, "discrimination_s": added[name]}, 9, {}, {}, {}, 0,
                       "test", np.nan, np.nan)
            for k, value in enumerate(values)
        ]
        for name, values in slowdowns.items()
    }  # fmt: skip
    monkeypatch.setattr("poolwise.report.resources.resources", lambda result, cell: Resources({}, np.nan, np.nan))
    ranked = standings(None, Sweep("", (0.0,), ("",), tuple(slowdowns), cells))
    assert [candidate.label for candidate in ranked] == ["wfp3 on a", "sjf on a", "fm on b", "fcfs on a"]


def test_table_omits_unknown_power_and_prices() -> None:
    ranked = [standing(name, "fcfs", [value]) for name, value in (("one", 1.0), ("two", 2.0))]
    use = {"cores": ResourceUse("cores", 8.0, 0.5, 0.1)}
    for watts, dollars, columns, last in (
        ([np.nan, np.nan], [np.nan, np.nan], [], "cores 10 %"),
        ([500.0, np.nan], [np.nan, np.nan], ["mean power (W)"], "unknown"),
        ([500.0, 600.0], [np.nan, 7e4], ["mean power (W)", "price ($)"], "70,000"),
    ):
        used = [Resources(use, watt, dollar) for watt, dollar in zip(watts, dollars, strict=True)]
        shown = table([replace(candidate, used=[amounts]) for candidate, amounts in zip(ranked, used, strict=True)])
        assert shown.columns[6:] == columns
        assert shown.rows[-1][-1] == last
        assert not any("nan" in cell.split() for row in shown.rows for cell in row[6:])
