"""A run for a single figure makes only some of the runs and draws the figure as a full run does."""

from pathlib import Path
from zlib import crc32

import pytest

from poolwise import catalog, registry
from poolwise.comparison.published import read_claims
from poolwise.presentation.figure_data import figure_csv
from poolwise.report.reproduction import expected, write_reproduction
from poolwise.reproductions import drmaestro, fair_memory, irop, nvme_composition, vinesim
from poolwise.reproductions.cases import Measurer
from poolwise.reproductions.irop.plan import Grid
from poolwise.reproductions.nvme_composition.plan import COLUMNS
from poolwise.reproductions.reproduction import reproduce
from poolwise.runner import Local

NUMBERS = (
    *COLUMNS, "true_composition_size", "true_sharing_ratio", "maximized", "minimized",
    "theta", "completion", "energy", "objective", "memory_used", "cores_used", "violations", "cpu_s",
)  # fmt: skip
REPRODUCTIONS = {
    "irop": irop.IropReproduction(),
    "nvme-composition": nvme_composition.NvmeComposition(seeds=3),
}


def fake_measurement(case):
    """Return metrics that are derived from the case; runs with calibrated arrivals differ by their case alone."""
    case = getattr(case, "case", case)
    found = {name: 1.0 + crc32(f"{case} {name}".encode()) % 97 for name in NUMBERS}
    nodes = [int(found["cpu_s"]) + k for k in range(5)]
    return {
        **found, "bound": 1.0, "status": "optimal", "opened": True, "reached": True, "node_nvme": nodes, "node_compute": nodes,
        "one_node": 1, "several_nodes": 1, "gap_s": 9.0, "begin": 0, "end": 10**9,
    }  # fmt: skip


@pytest.fixture
def requested(monkeypatch):
    """Replace the measurements by fake ones and record the requested cases."""
    recorded = []

    def measure(measurer, cases):
        cases = list(cases)
        recorded.extend(cases)
        return {case: fake_measurement(case) for case in cases}

    monkeypatch.setattr(Measurer, "__call__", measure)
    monkeypatch.setattr(irop, "QUICK", Grid(seeds=3, small_seeds=2, few_seeds=2))
    return recorded


def artifacts(name):
    found = [claim.artifact for claim in read_claims(catalog.find("reproductions", f"{name}.csv"))]
    return list(dict.fromkeys([*found, *REPRODUCTIONS[name].drawn]))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("drmaestro", drmaestro.PARTS),
        ("fair-memory", [*fair_memory.PAPER, *fair_memory.OURS]),
        ("irop", [irop.AT_SIZE, irop.SMALLER]),
        ("nvme-composition", nvme_composition.PARTS),
        ("vinesim", vinesim.PARTS),
    ],
)
def test_every_artifact_of_a_claim_belongs_to_a_part(name, parts):
    claimed = {claim.artifact for claim in read_claims(catalog.find("reproductions", f"{name}.csv"))}
    drawn = registry.find("reproductions", name).drawn
    assert {one for one in (*claimed, *drawn) if not any(part.concerns(one) for part in parts)} == set()


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_single_figure_equals_that_of_a_full_run(name, requested, tmp_path):
    def done(figure):
        requested.clear()
        quick = name == "irop"  # the fixture replaces the quick grid by a small complete one
        result = reproduce(name, REPRODUCTIONS[name], tmp_path, quick=quick, figure=figure, executor=Local(1))
        return result, len(set(requested))

    whole, all_runs = done("")
    drawn = {figure.name: figure for figure in whole.findings.figures}
    assert all(row.measured is not None for row in whole.rows)
    fewer = 0
    for artifact in artifacts(name):
        alone, runs = done(artifact)
        assert alone.rows == [row for row in whole.rows if row.claim.artifact == artifact]
        expected = {one for one, figure in drawn.items() if figure.artifact == artifact}
        assert {figure.name for figure in alone.findings.figures} == expected
        assert all(figure_csv(figure) == figure_csv(drawn[figure.name]) for figure in alone.findings.figures)
        fewer += runs < all_runs
    assert fewer >= len(artifacts(name)) - 1  # the rows that we add to IRoP need all runs


@pytest.mark.long
@pytest.mark.parametrize("name", ("fair-memory", "irop"))
def test_each_figure_runs_alone_and_measures_what_a_quick_run_does(name, tmp_path):
    """The figures share a folder, so each case is measured once, and times of rounds and placements are equal too."""
    reproduction = registry.find("reproductions", name)()
    whole = reproduce(name, reproduction, tmp_path, quick=True, jobs=2)
    for artifact in dict.fromkeys([*(row.claim.artifact for row in whole.rows), *reproduction.drawn]):
        alone = reproduce(name, reproduction, tmp_path, quick=True, jobs=2, figure=artifact)
        same = [row for row in whole.rows if row.claim.artifact == artifact]
        assert [(row.claim, row.cells()[5]) for row in alone.rows] == [(row.claim, row.cells()[5]) for row in same]
        write_reproduction(alone, tmp_path)


@pytest.mark.parametrize("name", ("drmaestro", "fair-memory", "irop", "nvme-composition", "vinesim"))
def test_every_figure_has_a_time_and_a_hash_as_on_the_page(name):
    scripts = expected(name)
    assert scripts and all(script.seconds > 0 for script in scripts.values())
    assert all(script.sha256 or script.figure.startswith(("rounds_", "figure7")) for script in scripts.values())
    shown = Path(__file__).parents[2] / "docs" / "reproductions" / name / "figures.csv"
    assert shown.read_text() == catalog.find("reproductions/figures", f"{name}.csv").read_text()
