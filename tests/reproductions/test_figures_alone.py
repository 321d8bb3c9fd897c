"""A figure alone needs some of the runs, and shows what a full run shows of it."""

from pathlib import Path
from zlib import crc32

import pytest

from poolwise import catalog
from poolwise.comparison.published import read_claims
from poolwise.presentation.figure_data import figure_csv
from poolwise.report.figure_scripts import expected
from poolwise.reproductions import irop, nvme_composition
from poolwise.reproductions.irop.plan import Grid
from poolwise.reproductions.nvme_composition.tables import COLUMNS
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


def pretend(case):
    """Numbers that follow from the case."""
    found = {name: 1.0 + crc32(f"{case} {name}".encode()) % 97 for name in NUMBERS}
    nodes = [int(found["cpu_s"]) + k for k in range(5)]
    return {
        **found, "bound": 1.0, "status": "optimal", "opened": True, "reached": True, "node_nvme": nodes, "node_compute": nodes,
    }  # fmt: skip


@pytest.fixture
def ran(monkeypatch):
    """What is measured, in place of the measurements."""
    seen = []

    def measure(cases, *_):
        seen.extend(cases)
        return {case: pretend(case) for case in cases}

    monkeypatch.setattr(irop, "measure_placement", measure)
    monkeypatch.setattr(irop, "measure_memory_time", measure)
    monkeypatch.setattr(irop, "QUICK", Grid(seeds=3, small_seeds=2, few_seeds=2))
    monkeypatch.setattr(nvme_composition, "measure_nvme_case", measure)
    monkeypatch.setattr(nvme_composition.packing, "measure_packings", lambda *_: {})
    return seen


def artifacts(name):
    found = [claim.artifact for claim in read_claims(catalog.find("reproductions", f"{name}.csv"))]
    return list(dict.fromkeys([*found, *REPRODUCTIONS[name].drawn]))


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_a_figure_alone_shows_what_a_full_run_shows_of_it(name, ran, tmp_path):
    def done(figure):
        ran.clear()
        quick = name == "irop"  # of which the grid above stands for the whole
        return reproduce(name, REPRODUCTIONS[name], tmp_path, quick=quick, figure=figure, executor=Local(1)), len(set(ran))

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
    assert fewer >= len(artifacts(name)) - 1  # IRoP's rows of our own need all


@pytest.mark.parametrize("name", ("drmaestro", "fair-memory", "irop", "nvme-composition", "vinesim"))
def test_every_figure_has_a_time_and_a_hash_and_the_pages_say_the_same(name):
    scripts = expected(name)
    assert scripts and all(script.seconds > 0 for script in scripts.values())
    assert all(script.sha256 or script.figure.startswith(("rounds_", "figure7")) for script in scripts.values())
    shown = Path(__file__).parents[2] / "docs" / "reproductions" / name / "figures.csv"
    assert shown.read_text() == catalog.find("reproductions/figures", f"{name}.csv").read_text()
