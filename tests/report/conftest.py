"""Results of a small study with three pool sizes and three orders."""

from pathlib import Path

import pytest

from poolwise import studies
from poolwise.studies import StudyResult

STUDY = """
version = 1
title = "A <small> study"
machine = "catalog:cerit-racks"
[workload]
trace = "catalog:cerit-2013.swf.gz"
first = 9000
jobs = 900
[measure]
warm_up = 50
[vary]
"scheduler.order" = ["fcfs", "sjf", "fm"]
"machine.pool.memory.memory" = ["128 GiB", "384 GiB", "2 TiB"]
"""


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    folder: Path = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    return studies.run(studies.load(folder / "study.toml"), folder / "out", 1)
