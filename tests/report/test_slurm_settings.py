"""Reports of studies that vary settings of today's Slurm scheduler and the number of nodes."""

import re
from pathlib import Path

import pytest

from poolwise import studies
from poolwise.report.study import study_answer
from tests.helpers import small_study

MACHINE = (
    small_study.MACHINE.partition("[[pool]]")[0]
    .replace("cores = 4", 'cores = 4\nallocation = "shared"')
    .replace("count = 2\n", "")
)
STUDY = """\
version = 1
title = "What would other settings change?"
machine = "machine.toml"
scheduler = "slurm.toml"

[workload]
trace = "jobs.csv"

[measure]
warm_up = 5

[vary]
"scheduler.backfill.settings.bf_interval" = [30, 600]
"scheduler.order.settings.PriorityWeightJobSize" = [0, 1000]
"machine.rack.0.nodes.thin" = [4, 5]

[today]
name = "our Slurm"
machine = "machine.toml"
scheduler = "slurm.toml"
"""
CONF = "ClusterName=small\nPriorityType=priority/multifactor\nPriorityWeightAge=1000\n"
SCHEDULER = """\
version = 1
title = "today"
order = { name = "multifactor", conf = "slurm.conf" }
backfill = { name = "slurm", conf = "slurm.conf" }
placement = "first_fit"
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> studies.StudyResult:
    return run(tmp_path_factory.mktemp("slurm"), STUDY)


def run(folder: Path, study: str) -> studies.StudyResult:
    for name, text in {"machine.toml": MACHINE, "slurm.conf": CONF, "slurm.toml": SCHEDULER, "study.toml": study}.items():
        (folder / name).write_text(text)
    rows = ["id,submit_ns,nodes,duration_ns,request.cores"]
    rows += [f"{k + 1},{k * 60 * 10**9},{1 + k % 3},{(200 + 37 * (k % 11)) * 10**9},{1 + k % 4}" for k in range(80)]
    (folder / "jobs.csv").write_text("\n".join(rows) + "\n")
    return studies.run(studies.load(folder / "study.toml"), folder / "out", 1)


@pytest.mark.long
def test_settings_that_the_scheduler_file_omits_can_be_varied(result: studies.StudyResult) -> None:
    assert len(result.cells) == 8
    waits = {cell.parameters["machine.rack.0.nodes.thin"]: cell.metrics["mean_wait_s"] for cell in result.cells}
    assert waits[5] < waits[4]


def test_number_of_nodes_is_the_size_and_settings_have_names(result: studies.StudyResult) -> None:
    answer = study_answer(result)
    assert "bf_interval " in answer.headline and "PriorityWeightJobSize " in answer.headline
    assert answer.headline.endswith("thin nodes in each rack.")
    assert answer.decision is not None
    rows = {row[0]: row[1:] for row in answer.decision.table().rows}
    assert rows["Scheduler settings"][1] == "unchanged"
    assert rows["Size"][1] == "4 thin nodes in each rack"
    assert "Queue order" not in rows
    text = " ".join([answer.headline, *answer.because, *(line for lines in answer.sections.values() for line in lines)])
    assert "best order" not in text and "other order" not in text


def test_sentences_name_the_number_of_nodes(result: studies.StudyResult) -> None:
    answer = study_answer(result)
    text = " ".join([*answer.because, *(line for lines in answer.sections.values() for line in lines)])
    assert "5 thin nodes in each rack" in text
    assert not re.search(r"\b(to|[Ww]ith|[Ss]tudy,) [45]\b(?! thin)", text)
    assert [found.machine for found in result.diagnostics()] == ["4 thin nodes in each rack", "5 thin nodes in each rack"]


def test_todays_order_shows_file_names_as_written(tmp_path: Path) -> None:
    study = STUDY[: STUDY.index("[vary]")].replace('scheduler = "slurm.toml"\n', "") + (
        '[scheduler]\nbackfill = "easy"\nplacement = "first_fit"\n\n[vary]\n"scheduler.order" = ["fcfs", "sjf"]\n\n'
        '[today]\nname = "our Slurm"\nscheduler = "site/slurm.toml"\n'
    )
    (tmp_path / "site").mkdir()
    scheduler = SCHEDULER.replace('"slurm.conf"', '"conf/slurm.conf"')
    (tmp_path / "site" / "conf").mkdir()
    files = {"machine.toml": MACHINE, "site/conf/slurm.conf": CONF, "site/slurm.toml": scheduler, "study.toml": study}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    rows = [f"{k + 1},{k * 60 * 10**9},{1 + k % 3},{(200 + 37 * (k % 11)) * 10**9},{1 + k % 4}" for k in range(80)]
    (tmp_path / "jobs.csv").write_text("\n".join(["id,submit_ns,nodes,duration_ns,request.cores", *rows]) + "\n")
    answer = study_answer(studies.run(studies.load(tmp_path / "study.toml"), tmp_path / "out", 1))
    assert answer.decision is not None
    table = {row[0]: row[1:] for row in answer.decision.table().rows}
    assert table["Policies"][1] == "multifactor(conf=conf/slurm.conf)"
    assert str(tmp_path) not in answer.headline


def test_size_today_is_that_of_the_compared_run(tmp_path: Path, result: studies.StudyResult) -> None:
    """Without a machine, today's runs have the size of the compared run, which the decision states; with one, its size."""
    left_out = run(tmp_path, STUDY.replace('our Slurm"\nmachine = "machine.toml"', 'our Slurm"'))
    for each, of_today in ((result, "4"), (left_out, "5")):
        decision = study_answer(each).decision
        assert decision is not None
        (size,) = [row[1:] for row in decision.table().rows if row[0] == "Size"]
        assert [amount.split()[0] for amount in size] == ["5", of_today]
