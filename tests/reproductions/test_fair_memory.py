"""The Fair Memory reproduction: every published value is a claim, and every measurement answers one."""

import csv
import re

import numpy as np
import pytest

from poolwise import catalog
from poolwise.compare.published import compare, read_claims
from poolwise.reproductions.fair_memory import claims, figures, runs
from poolwise.reproductions.fair_memory.runs import MACHINES, Done, FairMemoryResults, RunGroup, simulate_batch
from poolwise.traces.generators import generate
from tests.helpers.data import PUBLISHED

CLAIMS = catalog.find("reproductions", "fair-memory.csv")


def test_every_published_value_is_a_claim() -> None:
    ours = read_claims(CLAIMS)
    with (PUBLISHED / "fair_memory_claims.csv").open(newline="", encoding="utf-8") as file:
        published = list(csv.DictReader(file))
    assert published
    for row in published:
        machines = ("perlmutter", "juwels") if row["trace"] == "both" else (row["trace"],)
        for value in re.findall(r"[\d.]+", row["value"]):
            found = [
                c
                for c in ours
                if c.published == float(value) and (any(m in c.condition for m in machines) or c.condition.endswith(" ns"))
            ]
            assert found, row


@pytest.fixture(scope="module")
def results() -> FairMemoryResults:
    """A few hundred jobs on both machines, both scopes, the sizes of a quick run."""
    patch = pytest.MonkeyPatch()
    patch.setattr(runs, "WARM_UP", 100)
    patch.setattr(runs, "generate", lambda name, **settings: generate(name, **{**settings, "jobs": 400}))
    try:
        batches = [RunGroup(machine, 0, scope, True) for machine in MACHINES for scope in ("rack", "system")]
        return FairMemoryResults.of([Done.of(simulate_batch(batch)) for batch in batches])
    finally:
        patch.undo()


def test_every_measurement_answers_a_claim(results: FairMemoryResults) -> None:
    rows = compare(read_claims(CLAIMS), claims.measure(results))
    judged = [row for row in rows if row.holds in ("true", "false")]
    assert len(judged) > 60
    assert all(row.note for row in judged if row.holds == "false")
    assert claims.explain(results)


def test_the_figures_of_the_paper_are_drawn_for_both_machines(results: FairMemoryResults) -> None:
    names = [figure.name for figure in figures.draw(results)]
    assert len(set(names)) == len(names)
    for number in (7, 8, 9, 10, 11, 12):
        for machine in MACHINES:
            assert any(name.startswith(f"figure{number}-{machine}") for name in names)


def test_values_of_one_seed_are_those_of_its_runs(results: FairMemoryResults) -> None:
    row = results.frame.filter(machine="perlmutter", scope="rack", variant="ours", order="fm", size_tb=16)
    assert len(row) == 1
    assert np.array_equal(
        results.seeds("mean_bounded_slowdown", machine="perlmutter", scope="rack", variant="ours", order="fm", size_tb=16),
        row["mean_bounded_slowdown"].to_numpy(),
    )
