"""Cells on a real Dask cluster of several processes, whose parts are killed: `make test-live`."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poolwise.errors import PoolwiseError
from poolwise.runner import Local, Store, find_executor, records, run_missing
from poolwise.studies import load, run
from tests.helpers.benches import Deadly, Squares
from tests.helpers.kept_trials import content
from tests.helpers.small_study import write
from tests.live.executors.clusters import ROOT, Count, DaskProcesses, end, every, kill_one, wait_until

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, of connections that were cut


def test_a_study_is_the_same_byte_for_byte(tmp_path: Path) -> None:
    study = load(write(tmp_path) / "study.toml")
    run(study, tmp_path / "here", jobs=1)
    with DaskProcesses(tmp_path / "cluster") as cluster, find_executor("dask", cluster.address) as executor:
        run(study, tmp_path / "there", executor=executor)
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_workers_are_killed_every_few_seconds(tmp_path: Path) -> None:
    """Each death costs one cell at most, or two where the next one had begun: what was done is not done again."""
    killed, draw, told = [], random.Random(1), Count()
    here, store = Store(tmp_path / "here"), Store(tmp_path / "there")
    with here.writing():
        expected = records(Squares(), range(60), here, Local(1))
    with (
        DaskProcesses(tmp_path / "cluster") as cluster,
        find_executor("dask", cluster.address) as executor,
        store.writing(),
        every(3.0, lambda: kill_one(cluster.processes(), killed, draw)),
    ):
        assert records(Squares(seconds=1.0), range(60), store, executor, told) == expected
    print(f"{len(killed)} workers killed")
    assert len(killed) >= 5 and told.done == 60
    assert content(tmp_path / "there") == content(tmp_path / "here")


def test_the_scheduler_is_killed_and_comes_back(tmp_path: Path) -> None:
    told = Count()
    with DaskProcesses(tmp_path / "cluster") as cluster, find_executor("dask", cluster.address) as executor:
        scheduler = cluster.started[0]

        def restart() -> None:
            if scheduler.poll() is None and told.done >= 5:
                end(scheduler)
                time.sleep(2)
                cluster.start_scheduler()
                for number in range(2):
                    cluster.start_worker(number)

        with (store := Store(tmp_path / "out")).writing(), every(0.2, restart):
            found = records(Squares(seconds=0.5), range(30), store, executor, told)
    assert scheduler.poll() is not None and told.done == 30, "each is kept once"
    assert [one["square"] for one in found] == [n**2 for n in range(30)]


def test_a_client_that_is_killed_goes_on_with_what_is_missing(tmp_path: Path) -> None:
    code = f"""
from poolwise.runner import Store, run_missing, find_executor
from tests.helpers.benches import Squares
import pathlib, sys
store = Store(pathlib.Path({str(tmp_path / "out")!r}))
with find_executor("dask", sys.argv[1]) as executor, store.writing():
    run_missing(Squares(seconds=0.5), range(30), store, executor)
"""
    store = Store(tmp_path / "out")
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    with DaskProcesses(tmp_path / "cluster") as cluster:
        client = subprocess.Popen([sys.executable, "-c", code, cluster.address], env=environment)
        wait_until(lambda: sum(store.holds(Squares().key(n)) for n in range(30)) >= 5, 60)
        client.send_signal(signal.SIGKILL)
        client.wait()
        kept, told = sum(store.holds(Squares().key(n)) for n in range(30)), Count()
        with find_executor("dask", cluster.address) as executor, store.writing():
            run_missing(Squares(), range(30), store, executor, told)
    assert 5 <= kept < 30 and (told.before, told.done) == (kept, 30 - kept)


def test_a_cell_that_kills_its_workers_is_named(tmp_path: Path) -> None:
    with (
        DaskProcesses(tmp_path / "cluster") as cluster,
        find_executor("dask", cluster.address) as executor,
        (store := Store(tmp_path / "out")).writing(),
        pytest.raises(PoolwiseError, match=r"workers died again and again while they ran one cell, n=7"),
    ):
        run_missing(Deadly(), [7], store, executor)
