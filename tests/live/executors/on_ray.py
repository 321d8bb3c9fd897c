"""Cells on a real Ray cluster of several processes while parts of it are killed: `make test-live`."""

import random
import time
from pathlib import Path

import pytest

from poolwise.errors import InputError, PoolwiseError
from poolwise.runner import Local, Store, TaskRunner, find_executor
from poolwise.runner.executors import cluster as cluster_module
from poolwise.studies import load, run
from tests.helpers.kept_trials import content
from tests.helpers.small_study import write
from tests.helpers.task_types import Deadly, Squares
from tests.live.executors.clusters import Count, RayProcesses, end, every, is_listening, kill_one, wait_until

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray warns of lost connections


def test_study_results_on_ray_equal_local_results(tmp_path: Path) -> None:
    study = load(write(tmp_path) / "study.toml")
    run(study, tmp_path / "here", jobs=1)
    with RayProcesses(tmp_path / "cluster") as cluster, find_executor("ray", cluster.address) as executor:
        run(study, tmp_path / "there", executor=executor)
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_results_are_unchanged_while_workers_are_killed(tmp_path: Path) -> None:
    """Each death repeats at most one cell, or two if the next one had started; completed cells are not repeated."""
    killed, draw, progress = [], random.Random(1), Count()
    local, store = Store(tmp_path / "here"), Store(tmp_path / "there")
    with local.writing():
        expected = TaskRunner(local, Local(1)).records(Squares(), range(60))
    with (
        RayProcesses(tmp_path / "cluster") as cluster,
        find_executor("ray", cluster.address) as executor,
        store.writing(),
        every(3.0, lambda: kill_one(cluster.processes(), killed, draw)),
    ):
        assert TaskRunner(store, executor, progress).records(Squares(seconds=1.0), range(60)) == expected
    print(f"{len(killed)} workers killed")
    assert len(killed) >= 5 and progress.done == 60
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_run_survives_a_restart_of_the_head(tmp_path: Path) -> None:
    """The run waits for the head; only cells in progress are computed again."""
    progress, local, store = Count(), Store(tmp_path / "here"), Store(tmp_path / "there")
    with local.writing():
        expected = TaskRunner(local, Local(1)).records(Squares(), range(30))
    with RayProcesses(tmp_path / "cluster") as cluster, find_executor("ray", cluster.address) as executor:
        head = cluster.started[0]

        def restart() -> None:
            if head.poll() is None and progress.done >= 5:
                end(head)
                time.sleep(2)
                cluster.start_head()

        with store.writing(), every(0.2, restart):
            assert TaskRunner(store, executor, progress).records(Squares(seconds=0.5), range(30)) == expected
    assert head.poll() is not None and progress.done == 30, "a cell was saved twice"
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_lost_head_is_an_error_and_a_new_head_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PATIENCE_S", 3.0)
    progress, resumed, local, store = Count(), Count(), Store(tmp_path / "here"), Store(tmp_path / "there")
    with local.writing():
        TaskRunner(local, Local(1)).records(Squares(), range(30))
    with RayProcesses(tmp_path / "cluster") as cluster:
        head = cluster.started[0]
        with (
            find_executor("ray", cluster.address) as executor,
            store.writing(),
            every(0.2, lambda: end(head) if progress.done >= 5 else None),
            pytest.raises(InputError, match=r"(?s)no Ray cluster answers.*ray start --head, then give the same command again"),
        ):
            TaskRunner(store, executor, progress).run(Squares(seconds=0.5), range(30))
        cluster.start_head()
        wait_until(lambda: is_listening(cluster.port), 60)
        with find_executor("ray", cluster.address) as executor, store.writing():
            TaskRunner(store, executor, resumed).run(Squares(seconds=0.5), range(30))
    assert 5 <= progress.done < 30 and (resumed.before, resumed.done) == (progress.done, 30 - progress.done)
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_missing_head_is_an_immediate_error() -> None:
    started_at = time.monotonic()
    with pytest.raises(InputError, match=r"(?s)no Ray cluster answers.*ray start --head"), find_executor("ray", "127.0.0.1:1"):
        pass
    assert time.monotonic() - started_at < 10


def test_error_names_the_cell_that_kills_its_workers(tmp_path: Path) -> None:
    with (
        RayProcesses(tmp_path / "cluster") as cluster,
        find_executor("ray", cluster.address) as executor,
        (store := Store(tmp_path / "out")).writing(),
        pytest.raises(PoolwiseError, match=r"workers died again and again while they ran one cell, n=7"),
    ):
        TaskRunner(store, executor).run(Deadly(), [7])
