"""Cells on a real Dask cluster of several processes while parts of it are killed: `make test-live`."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poolwise.errors import PoolwiseError
from poolwise.runner import Local, Store, TaskRunner, find_executor
from poolwise.studies import load, run
from tests.helpers.kept_trials import content
from tests.helpers.small_study import write
from tests.helpers.task_types import Deadly, Squares
from tests.live.executors.clusters import ROOT, Count, DaskProcesses, end, every, kill_one, wait_until

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask warns of lost connections


def test_study_results_on_dask_equal_local_results(tmp_path: Path) -> None:
    study = load(write(tmp_path) / "study.toml")
    run(study, tmp_path / "here", jobs=1)
    with DaskProcesses(tmp_path / "cluster") as cluster, find_executor("dask", cluster.address) as executor:
        run(study, tmp_path / "there", executor=executor)
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_results_are_unchanged_while_workers_are_killed(tmp_path: Path) -> None:
    """Each death repeats at most one cell, or two if the next one had started; completed cells are not repeated.

    A worker is killed only if a cell has been completed since the last death: a slow computer needs seconds to start workers.
    """
    killed, draw, progress, done = [], random.Random(1), Count(), [0]
    local, store = Store(tmp_path / "here"), Store(tmp_path / "there")

    def kill_after_progress() -> None:
        if progress.done > done[-1]:
            done.append(progress.done)
            kill_one(cluster.processes(), killed, draw)

    with local.writing():
        expected = TaskRunner(local, Local(1)).records(Squares(), range(60))
    with (
        DaskProcesses(tmp_path / "cluster") as cluster,
        find_executor("dask", cluster.address) as executor,
        store.writing(),
        every(3.0, kill_after_progress),
    ):
        assert TaskRunner(store, executor, progress).records(Squares(seconds=1.0), range(60)) == expected
    print(f"{len(killed)} workers killed")
    assert len(killed) >= 5 and progress.done == 60
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_run_survives_a_restart_of_the_scheduler(tmp_path: Path) -> None:
    progress = Count()
    with DaskProcesses(tmp_path / "cluster") as cluster, find_executor("dask", cluster.address) as executor:
        scheduler = cluster.started[0]

        def restart() -> None:
            if scheduler.poll() is None and progress.done >= 5:
                end(scheduler)
                time.sleep(2)
                cluster.start_scheduler()
                for number in range(2):
                    cluster.start_worker(number)

        with (store := Store(tmp_path / "out")).writing(), every(0.2, restart):
            records = TaskRunner(store, executor, progress).records(Squares(seconds=0.5), range(30))
    assert scheduler.poll() is not None and progress.done == 30, "a cell was saved twice"
    assert [record["square"] for record in records] == [n**2 for n in range(30)]


def test_restarted_client_computes_only_missing_cells(tmp_path: Path) -> None:
    code = f"""
from poolwise.runner import TaskRunner, Store, find_executor
from tests.helpers.task_types import Squares
import pathlib, sys
store = Store(pathlib.Path({str(tmp_path / "out")!r}))
with find_executor("dask", sys.argv[1]) as executor, store.writing():
    TaskRunner(store, executor).run(Squares(seconds=0.5), range(30))
"""
    store = Store(tmp_path / "out")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    with DaskProcesses(tmp_path / "cluster") as cluster:
        client = subprocess.Popen([sys.executable, "-c", code, cluster.address], env=environment)
        wait_until(lambda: sum(store.holds(Squares().key(n)) for n in range(30)) >= 5, 60)
        client.send_signal(signal.SIGKILL)
        client.wait()
        saved, progress = sum(store.holds(Squares().key(n)) for n in range(30)), Count()
        with find_executor("dask", cluster.address) as executor, store.writing():
            TaskRunner(store, executor, progress).run(Squares(), range(30))
    assert 5 <= saved < 30 and (progress.before, progress.done) == (saved, 30 - saved)


def test_error_names_the_cell_that_kills_its_workers(tmp_path: Path) -> None:
    with (
        DaskProcesses(tmp_path / "cluster") as cluster,
        find_executor("dask", cluster.address) as executor,
        (store := Store(tmp_path / "out")).writing(),
        pytest.raises(PoolwiseError, match=r"workers repeatedly died while running cell n=7"),
    ):
        TaskRunner(store, executor).run(Deadly(), [7])
