"""Sentences about machines and policies agree with the numbers of each seed."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student  # type: ignore[import-untyped]

from poolwise.report.decision_card import _certainty
from poolwise.report.resources import GOAL, Standing, because, lead
from poolwise.studies import CellResult
from poolwise.studies.resources import Resources


def standing(machine: str, policies: str, slowdowns: list[float]) -> Standing:
    cells = [
        CellResult({}, seed, f"{machine}{policies}{seed}", {GOAL: value}, 9, {}, {}, {}, 0, "test", np.nan, np.nan)
        for seed, value in enumerate(slowdowns)
    ]
    return Standing(f"{machine}, {policies}", machine, cells, [Resources({}, np.nan, np.nan)] * len(cells))


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
    ranked = [standing(*one) for one in drawn]
    alike = [f"{p} on {m}" for m, p, values in drawn[1:] if seeds > 1 and not distinguishable(values, drawn[0][2])]
    named = lead(ranked).removeprefix("Run ").removesuffix(".")
    assert re.split(r", | or ", named) == [f"{drawn[0][1]} on {drawn[0][0]}", *alike[:2]]
    lines = because(ranked)
    assert any("those in the headline are not distinguishable from each other" in line for line in lines) == bool(alike)
    assert (f"from those of {len(alike) - 2} more" in " ".join(lines)) == (len(alike) > 2)
    for line in lines[2:]:
        policy, machine = re.search(r": (p\d), with", line)[1], re.search(r"Best on (m\d)", line)
        values = next(v for m, p, v in drawn if p == policy and m == (machine[1] if machine else drawn[0][0]))
        assert ("excludes zero" in line) == (seeds > 1 and distinguishable(values, drawn[0][2]))
        assert ("not distinguishable" in line) == (seeds > 1 and not distinguishable(values, drawn[0][2]))
    certainty = _certainty(ranked)
    assert ("only one combination" in certainty) == (len(ranked) == 1)
    assert ("better than all" in certainty) == (len(ranked) > 1 and seeds > 1 and not alike)
    assert (f"not distinguishable from {len(alike)} of {len(ranked) - 1} " in certainty) == bool(alike)
    assert ("unknown" in certainty) == (len(ranked) > 1 and seeds == 1)
