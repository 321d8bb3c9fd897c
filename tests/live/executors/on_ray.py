"""Cells on a real Ray cluster of several processes, whose parts are killed: `make test-live`."""

import random
from pathlib import Path

import pytest

from poolwise.errors import PoolwiseError
from poolwise.studies import load, run
from poolwise.trials import Local, Store, fill, find_executor, records
from tests.helpers.benches import Deadly, Squares
from tests.helpers.kept_trials import content
from tests.helpers.small_study import write
from tests.live.executors.clusters import Count, RayProcesses, every, kill_one

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, of connections that were cut


def test_a_study_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    study = load(write(tmp_path) / "study.toml")
    run(study, tmp_path / "here", jobs=1)
    with RayProcesses(tmp_path / "cluster") as cluster, find_executor("ray", cluster.address) as executor:
        run(study, tmp_path / "there", executor=executor)
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_workers_are_killed_every_few_seconds(tmp_path: Path) -> None:
    """Each death costs one cell at most, or two where the next one had begun: what was done is not done again."""
    killed, draw, told = [], random.Random(1), Count()
    here, store = Store(tmp_path / "here"), Store(tmp_path / "there")
    with here.writing():
        expected = records(Squares(), range(60), here, Local(1))
    with (
        RayProcesses(tmp_path / "cluster") as cluster,
        find_executor("ray", cluster.address) as executor,
        store.writing(),
        every(3.0, lambda: kill_one(cluster.processes(), killed, draw)),
    ):
        assert records(Squares(seconds=1.0), range(60), store, executor, told) == expected
    print(f"{len(killed)} workers killed")
    assert len(killed) >= 5 and told.done == 60
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_a_cell_that_kills_its_workers_is_named(tmp_path: Path) -> None:
    with (
        RayProcesses(tmp_path / "cluster") as cluster,
        find_executor("ray", cluster.address) as executor,
        (store := Store(tmp_path / "out")).writing(),
        pytest.raises(PoolwiseError, match=r"workers died again and again while they ran one cell, n=7"),
    ):
        fill(Deadly(), [7], store, executor)
