"""Reports of studies on shared nodes with one log: certainty over the jobs, and the comparison with today."""

from pathlib import Path

import pytest

from poolwise import studies
from poolwise.comparison.compare import compare_with_today
from poolwise.report.study import study_answer
from tests.helpers import small_study

MACHINE = small_study.MACHINE.replace("cores = 4", 'cores = 4\nallocation = "shared"').replace(
    "nodes = { thin = 4 }", "nodes = { thin = 2 }"
)
WITHOUT_POOLS = MACHINE.partition("[[pool]]")[0]
STUDY = small_study.STUDY.partition("[vary]")[0].replace('order = "fm"', 'order = "fcfs"\nplacement = "first_fit"')
VARY = '[vary]\n"scheduler.order" = ["fcfs", "sjf"]\n"scheduler.backfill" = ["easy", "none"]\n'
TODAY = '[today]\nname = "our cluster"\nscheduler = { order = "fcfs", backfill = "none", placement = "first_fit" }\n'


def _run(folder: Path, study: str, machine: str = MACHINE) -> studies.StudyResult:
    (folder / "machine.toml").write_text(machine)
    rows = ["id,submit_ns,nodes,duration_ns,request.cores"]
    lengths = [(60 + 937 * (k % 11 == 0) + 37 * (k % 5)) * 10**9 for k in range(400)]
    rows += [f"{k + 1},{k * 100 * 10**9},{1 + k % 3},{lengths[k]},{1 + k % 4}" for k in range(400)]
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    (folder / "study.toml").write_text(study)
    return studies.run(studies.load(folder / "study.toml"), folder / "out", 1)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> studies.StudyResult:
    return _run(tmp_path_factory.mktemp("shared"), STUDY + VARY + TODAY)


def test_card_compares_the_slowdown_with_today_as_compare_does(result: studies.StudyResult) -> None:
    answer = study_answer(result)
    assert answer.decision is not None
    rows = {row[0]: row[1:] for row in answer.decision.table().rows}
    assert rows["Policies"] == ["SJF, easy", "FCFS, none"]
    (best,) = [cell for cell in result.cells if [*cell.parameters.values()] == ["sjf", "easy"]]
    changes = compare_with_today(result, [best])
    assert changes is not None
    (difference,) = [each for each in changes.differences if each.metric == "mean_bounded_slowdown_local"]
    assert difference.verdict == "better"
    assert [f"{difference.value:.3g}", f"{difference.first:.3g}"] == rows["Mean bounded slowdown"]
    text = rows["Difference in slowdown from our cluster"][0]
    assert text.startswith(f"{difference.interval.mean:.3g} [{difference.interval.low:.3g}, ") and text.endswith("; better")
    assert "Changes compared with our cluster" in answer.sections


def test_metrics_of_pools_and_undefined_metrics_are_omitted(tmp_path: Path) -> None:
    answer = study_answer(_run(tmp_path, STUDY + VARY + TODAY, machine=WITHOUT_POOLS))
    tables = {table.title: table for table in answer.tables}
    results = tables["All results"]
    assert not any("remote memory" in column or "node utilization" in column for column in results.columns)
    assert not any({*column} == {"-"} for column in zip(*results.rows, strict=True))
    assert "longer runtimes (%)" not in tables["Machines and policies"].columns
    assert "pooling" not in tables["Machines and policies"].note


def test_metrics_of_pools_are_shown_on_machines_with_pools(result: studies.StudyResult) -> None:
    tables = {table.title: table for table in study_answer(result).tables}
    assert any("remote memory" in column for column in tables["All results"].columns)
    assert "longer runtimes (%)" in tables["Machines and policies"].columns
    assert "; the slowdown includes the cost of pooling. The first" in tables["Machines and policies"].note


def test_report_has_one_definition_of_stranded(result: studies.StudyResult) -> None:
    """The drawing of the machine shows another share, free but unusable, which it does not call stranded."""
    answer = study_answer(result)
    figures = {figure.name: figure for figure in answer.figures}
    definition = "free while waiting jobs request at least as much"
    assert definition in figures["stranded"].caption
    assert definition.replace("while", "and") in answer.sections["Stranded resources"][-1]
    machine = figures["machine"]
    assert machine.title.startswith("Use of the machine") and "out of reach" in machine.series
    assert "out of reach are free but cannot be used" in machine.caption
    drawn = " ".join([machine.title, machine.caption, *machine.series, *(box.description for box in machine.boxes)])
    assert "stranded" not in drawn.lower()


def test_certainty_on_one_log_is_over_the_jobs(result: studies.StudyResult) -> None:
    answer = study_answer(result)
    assert answer.decision is not None and answer.decision.certainty is not None
    certainty = answer.decision.certainty
    assert certainty.kind in ("better", "alike") and certainty.over == "jobs" and certainty.samples == 395
    assert "unknown" not in " ".join(answer.because) and "over the jobs, from a block bootstrap" in answer.because[0]
    (table,) = [shown for shown in answer.tables if shown.title == "Machines and policies"]
    metrics = {tuple(cell.parameters.values()): cell.metrics["mean_bounded_slowdown_local"] for cell in result.cells}
    gap = metrics["fcfs", "none"] - metrics["sjf", "easy"]
    (last,) = [row for row in table.rows if row[0] == "FCFS, none"]
    assert last[2].startswith(f"+{gap:.3g} [+")


def test_wait_of_a_job_on_shared_nodes_is_drawn_by_cores(result: studies.StudyResult) -> None:
    (drawn,) = [figure for figure in study_answer(result).figures if figure.name == "gantt"]
    assert "Each box is a job on one node; its height is the number of cores that it held there." in drawn.caption


@pytest.mark.parametrize("vary", ['[vary]\n"scheduler.order" = ["fcfs"]\n', ""])
def test_single_setting_is_named(tmp_path: Path, vary: str) -> None:
    answer = study_answer(_run(tmp_path, STUDY + vary + TODAY))
    assert answer.headline == "Run FCFS."
    assert answer.decision is not None
    assert answer.decision.table().rows[0][:2] == ["Policies", "FCFS"]
