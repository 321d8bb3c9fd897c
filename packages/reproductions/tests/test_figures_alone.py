"""A run for a single figure makes only some of the runs and draws the figure as a full run does."""

import html
import re
import shlex
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest

from poolwise import registry
from poolwise.presentation.figure_data import figure_csv
from poolwise.runner import Local
from poolwise_reproductions import catalog, drmaestro, fair_memory, irop, nvme_composition, vinesim
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.fair_memory.runs import FairMemoryCase
from poolwise_reproductions.figure_scripts import expected, scripts_of
from poolwise_reproductions.irop.plan import Grid
from poolwise_reproductions.nvme_composition.plan import COLUMNS
from poolwise_reproductions.report import write_reproduction
from poolwise_reproductions.reproduction import about, find_artifact, reproduce

PAGES = Path(__file__).parents[3] / "docs" / "reproductions"
NUMBERS = (
    *COLUMNS, "true_composition_size", "true_sharing_ratio", "maximized", "minimized",
    "theta", "completion", "energy", "objective", "memory_used", "cores_used", "violations", "cpu_s",
)  # fmt: skip
REPRODUCTIONS = {
    "drmaestro": drmaestro.DRMaestro(),
    "fair-memory": fair_memory.FairMemory(),
    "irop": irop.IropReproduction(),
    "nvme-composition": nvme_composition.NvmeComposition(seeds=3),
    "vinesim": vinesim.VineSimReproduction(),
}
SHORT = ("fair-memory",)
"""Reproductions whose quick run takes less than a minute: `make test-long` runs their figures alone, too."""
GRID = [float(k) for k in range(5)]


class FakeRun(dict):
    """Measurement whose metrics are derived from the case; every metric has a value."""

    def __init__(self, case, lists):
        super().__init__(lists)
        self.case = case

    def __missing__(self, metric):
        return 1.0 + crc32(f"{self.case} {metric}".encode()) % 97

    def get(self, metric, default=None):
        """Return a metric, also one that is not stored."""
        return self[metric]


def fake_measurement(case):
    """Return metrics that are derived from the case; runs with calibrated arrivals differ by their case alone."""
    case = getattr(case, "case", case)
    nodes = [crc32(str(case).encode()) % 97 + k for k in range(5)]
    sample = case.order == "fm" and not case.seed and not case.trace if isinstance(case, FairMemoryCase) else False
    samples = {name: GRID if sample else None for name in ("slowdown", "degradation")}
    samples["slowdown_cdf"] = nodes
    run = FakeRun(case, samples | {
        "memory": [0.1] * 10 if sample else None, "grid_s": GRID, "used": nodes, "beyond": nodes * 2, "normalised": GRID[::-1],
        "total_s": [0.1, 0.2], "solver_s": [0.01, 0.02], "solved": 3, "solving": 2,
        "series": {"begin_us": GRID, "by_type": {"cpu-intel": GRID, "gpu": GRID}},
        "bound": 1.0, "status": "optimal", "opened": True, "reached": True, "node_nvme": nodes, "node_compute": nodes,
        "one_node": 1, "several_nodes": 1, "gap_s": 9.0, "begin": 0, "end": 10**9,
    })  # fmt: skip
    for name in NUMBERS:
        run[name] = run[name]
    return run


@pytest.fixture
def requested(monkeypatch):
    """Replace the measurements by fake ones, use few seeds, and record the requested cases."""
    recorded = []

    def measure(measurer, cases):
        cases = list(cases)
        recorded.extend(cases)
        return {case: fake_measurement(case) for case in cases}

    few = {scenario: 2 for scenario in drmaestro.FULL.seeds}
    monkeypatch.setattr(Measurer, "__call__", measure)
    monkeypatch.setattr(drmaestro, "FULL", replace(drmaestro.FULL, seeds=few, changed=dict.fromkeys(drmaestro.FULL.changed, 1)))
    monkeypatch.setattr(fair_memory, "FULL", replace(fair_memory.FULL, seeds=1))
    monkeypatch.setattr(irop, "QUICK", Grid(seeds=3, small_seeds=2, draws=4, few_seeds=2))
    return recorded


def artifacts(name, whole):
    """Return every figure, table or section of a claim or a drawing."""
    named = [row.claim.artifact for row in whole.rows] + [figure.artifact for figure in whole.findings.figures]
    return [artifact for artifact in dict.fromkeys([*named, *REPRODUCTIONS[name].drawn]) if artifact]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("drmaestro", drmaestro.PARTS),
        ("fair-memory", [*fair_memory.PAPER, *fair_memory.OURS]),
        ("irop", list(irop.PARTS)),
        ("nvme-composition", nvme_composition.PARTS),
        ("vinesim", vinesim.PARTS),
    ],
)
def test_every_artifact_of_a_claim_belongs_to_a_part(name, parts):
    claimed = {claim.artifact for claim in read_claims(catalog.find("claims", f"{name}.csv"))}
    drawn = registry.find("reproductions", name).drawn
    assert {artifact for artifact in (*claimed, *drawn) if not any(part.concerns(artifact) for part in parts)} == set()


@pytest.mark.long
@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_single_figure_equals_that_of_a_full_run(name, requested, tmp_path):
    """Claims, cases and drawings of each figure are consistent: alone it gives the rows and figures of the whole run."""

    def done(figure):
        requested.clear()
        quick = name in (
            "irop",
            "vinesim",
        )  # their quick grids are complete: that of VineSim, and the one that the fixture gives to IRoP
        result = reproduce(name, REPRODUCTIONS[name], tmp_path, quick=quick, figure=figure, executor=Local(1))
        return result, len(set(requested))

    whole, all_runs = done("")
    drawn = {figure.name: figure for figure in whole.findings.figures}
    missing = [row.claim.key for row in whole.rows if row.measured is None]
    assert len(missing) <= 1, missing  # the crossover of VineSim's Figure 8a, where no curves cross
    fewer = 0
    for artifact in artifacts(name, whole):
        alone, runs = done(artifact)
        same = [row for row in whole.rows if about(artifact, row.claim.artifact)]
        assert [row.cells() for row in alone.rows] == [row.cells() for row in same]
        expected = {drawn_artifact for drawn_artifact, figure in drawn.items() if about(artifact, figure.artifact)}
        assert {figure.name for figure in alone.findings.figures} == expected
        for figure in alone.findings.figures:
            assert figure_csv(figure) == figure_csv(drawn[figure.name]), figure.name
        assert all(script.figure in drawn for script in scripts_of(alone))
        fewer += runs < all_runs
    assert fewer >= len(artifacts(name, whole)) - 1  # the rows that we add to IRoP need all runs


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_printed_commands_name_a_known_figure(name, requested, tmp_path):
    """Each command on a page of a reproduction parses, and its figure is drawn or claimed."""
    claims = read_claims(catalog.find("claims", f"{name}.csv"))
    artifact_names = [*(claim.artifact for claim in claims), *REPRODUCTIONS[name].drawn]
    commands = printed_commands(name)
    assert commands
    for command in commands:
        program, verb, reproduction, *options = shlex.split(command)
        assert (program, verb, reproduction) == ("poolwise", "reproduce", name)
        assert options[::2] in ([], ["--figure"])
        if options:
            assert len(options) == 2, f"'{command}' names no figure"
            find_artifact(options[1], artifact_names)


def printed_commands(name):
    """Return the commands on the pages of a reproduction and in its list of figures."""
    texts = [(PAGES / page).read_text(encoding="utf-8") for page in (f"{name}.html", f"{name}/figures.csv", "index.md")]
    lines = (re.sub(r"<[^>]*>", "\n", html.unescape(text)) for text in texts)
    value = r"\w+|\"+[^\"]+\"+|'[^']+'"
    pattern = rf"poolwise reproduce {name}(?: --figure\b(?: (?:{value}))?)?"
    commands = [each for line in lines for each in re.findall(pattern, line)]
    return list(dict.fromkeys(re.sub('"+', '"', each) for each in commands))


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.reproduction) for name in REPRODUCTIONS]
)
def test_each_figure_runs_alone_and_measures_what_a_quick_run_does(name, tmp_path):
    """The figures share a folder, so each case is measured once, and times of rounds and placements are equal too."""
    reproduction = registry.find("reproductions", name)()
    whole = reproduce(name, reproduction, tmp_path, quick=True, jobs=2)
    for artifact in artifacts(name, whole):
        alone = reproduce(name, reproduction, tmp_path, quick=True, jobs=2, figure=artifact)
        same = [row for row in whole.rows if about(artifact, row.claim.artifact)]
        assert [row.cells() for row in alone.rows] == [row.cells() for row in same]
        write_reproduction(alone, tmp_path)


@pytest.mark.parametrize("name", ("drmaestro", "fair-memory", "irop", "nvme-composition", "vinesim"))
def test_every_figure_has_a_time_and_a_hash_as_on_the_page(name):
    scripts = expected(name)
    assert scripts and all(script.seconds > 0 for script in scripts.values())
    assert all(script.sha256 or script.figure.startswith(("rounds_", "figure7")) for script in scripts.values())
    shown = PAGES / name / "figures.csv"
    assert shown.read_text() == catalog.find("figures", f"{name}.csv").read_text()
