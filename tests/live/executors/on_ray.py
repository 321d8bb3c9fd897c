"""Cells on a real Ray cluster of several processes, whose parts are killed: `make test-live`."""

import random
import time
from pathlib import Path

import pytest

from poolwise.errors import InputError, PoolwiseError
from poolwise.runner import Local, Store, find_executor, records, run_missing
from poolwise.runner.executors import cluster as cluster_module
from poolwise.studies import load, run
from tests.helpers.benches import Deadly, Squares
from tests.helpers.kept_trials import content
from tests.helpers.small_study import write
from tests.live.executors.clusters import Count, RayProcesses, answers, end, every, kill_one, wait_until

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


def test_the_head_is_killed_and_comes_back(tmp_path: Path) -> None:
    """The run waits for it: only what was on its way is computed again."""
    told, here, store = Count(), Store(tmp_path / "here"), Store(tmp_path / "there")
    with here.writing():
        expected = records(Squares(), range(30), here, Local(1))
    with RayProcesses(tmp_path / "cluster") as cluster, find_executor("ray", cluster.address) as executor:
        head = cluster.started[0]

        def restart() -> None:
            if head.poll() is None and told.done >= 5:
                end(head)
                time.sleep(2)
                cluster.start_head()

        with store.writing(), every(0.2, restart):
            assert records(Squares(seconds=0.5), range(30), store, executor, told) == expected
    assert head.poll() is not None and told.done == 30, "each is kept once"
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_a_head_that_stays_away_is_said_and_another_one_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE_S", 3.0)
    told, then, here, store = Count(), Count(), Store(tmp_path / "here"), Store(tmp_path / "there")
    with here.writing():
        records(Squares(), range(30), here, Local(1))
    with RayProcesses(tmp_path / "cluster") as cluster:
        head = cluster.started[0]
        with (
            find_executor("ray", cluster.address) as executor,
            store.writing(),
            every(0.2, lambda: end(head) if told.done >= 5 else None),
            pytest.raises(InputError, match=r"(?s)no Ray cluster answers.*ray start --head, then give the same command again"),
        ):
            run_missing(Squares(seconds=0.5), range(30), store, executor, told)
        cluster.start_head()
        wait_until(lambda: answers(cluster.port), 60)
        with find_executor("ray", cluster.address) as executor, store.writing():
            run_missing(Squares(seconds=0.5), range(30), store, executor, then)
    assert 5 <= told.done < 30 and (then.before, then.done) == (told.done, 30 - told.done)
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_where_no_head_is_that_is_said_at_once() -> None:
    begun = time.monotonic()
    with pytest.raises(InputError, match=r"(?s)no Ray cluster answers.*ray start --head"), find_executor("ray", "127.0.0.1:1"):
        pass
    assert time.monotonic() - begun < 10


def test_a_cell_that_kills_its_workers_is_named(tmp_path: Path) -> None:
    with (
        RayProcesses(tmp_path / "cluster") as cluster,
        find_executor("ray", cluster.address) as executor,
        (store := Store(tmp_path / "out")).writing(),
        pytest.raises(PoolwiseError, match=r"workers died again and again while they ran one cell, n=7"),
    ):
        run_missing(Deadly(), [7], store, executor)
