"""Dask workers as jobs of a real Slurm, as in the how-to about running on several machines."""

import os
import sys
from pathlib import Path

import pytest
from dask_jobqueue import SLURMCluster

from poolwise.runner import Local, Store, TaskRunner, find_executor
from tests.helpers.kept_trials import content
from tests.helpers.task_types import Squares
from tests.live.executors.clusters import ROOT, end, free_port, start, wait_until
from tests.live.slurm.cluster import Cluster, missing_programs

pytestmark = [
    pytest.mark.skipif(bool(missing_programs(accounting=False)), reason=missing_programs(False) or "Slurm is installed"),
    pytest.mark.filterwarnings("ignore"),  # lost connections
]
NO_LIMIT = "--memory-limit 0"
"""The jobs of the test cluster request 1 MiB by default, which their processes can read, but which Slurm does not enforce."""
PYTHON_PATH = os.pathsep.join([str(ROOT), str(ROOT / "src")])


@pytest.fixture(scope="module")
def slurm():
    with pytest.MonkeyPatch.context() as patch, Cluster("", port=23000, accounting=False) as cluster:
        patch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
        patch.setenv("PATH", cluster.env["PATH"])
        patch.setenv("PYTHONPATH", PYTHON_PATH)
        cluster.env["PYTHONPATH"] = PYTHON_PATH  # of jobs that `call` submits
        yield cluster


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> Path:
    """Results computed on this computer."""
    folder = tmp_path_factory.mktemp("here")
    with (store := Store(folder)).writing():
        TaskRunner(store, Local(1)).records(Squares(), range(20))
    return folder


def test_job_array_of_workers_finds_the_scheduler_by_file(slurm, expected, tmp_path):
    file, store = tmp_path / "scheduler.json", Store(tmp_path / "there")
    words = ("--host", "127.0.0.1", "--port", free_port(), "--no-dashboard", "--scheduler-file", file)
    scheduler = start(tmp_path, "scheduler", sys.executable, "-m", "dask", "scheduler", *words)
    try:
        wait_until(file.is_file, 60)
        worker = f"{sys.executable} -m dask worker --scheduler-file {file} --nthreads 1 {NO_LIMIT} --no-dashboard"
        slurm.call("sbatch", "--array=1-2", "--cpus-per-task=1", "--time=0:10:00", f"--chdir={tmp_path}", "--wrap", worker)
        with find_executor("dask", str(file)) as executor, store.writing():
            TaskRunner(store, executor).records(Squares(seconds=0.2), range(20))
    finally:
        slurm.call("scancel", "--user=root", check=False)
        end(scheduler)
    assert content(tmp_path / "there") == content(expected)


def test_workers_started_by_dask_jobqueue_compute_the_cells(slurm, expected, tmp_path):
    store = Store(tmp_path / "there")
    with SLURMCluster(
        cores=1,
        processes=1,
        memory="2 GB",
        walltime="00:10:00",
        job_directives_skip=["--mem"],
        log_directory=str(tmp_path),
        local_directory=str(tmp_path),
        interface="lo",
        worker_extra_args=NO_LIMIT.split(),
        scheduler_options={"dashboard_address": None},
    ) as cluster:
        cluster.scale(jobs=2)
        with find_executor("dask", cluster.scheduler_address) as executor, store.writing():
            TaskRunner(store, executor).records(Squares(seconds=0.2), range(20))
    assert content(tmp_path / "there") == content(expected)
