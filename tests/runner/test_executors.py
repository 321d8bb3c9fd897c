"""Executors return the same results. Real clusters of several processes are in tests/live/executors."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import catalog
from poolwise.errors import InputError, PolicyError, PoolwiseError, UnknownNameError
from poolwise.hashing import canonical, digest
from poolwise.runner import Executor, Local, Store, TaskRunner, find_executor
from poolwise.runner.executors import payload
from poolwise.runner.executors.payload import Payload, store_file
from poolwise.runner.executors.remote_task import versions
from poolwise.studies import load, run
from tests.helpers.kept_trials import content
from tests.helpers.small_study import write
from tests.helpers.task_types import Deadly, Growing, Lengths, Mortal, Squares


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    """A Dask cluster within this process."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as dask_cluster,
        find_executor("dask", dask_cluster.scheduler_address) as executor,
    ):
        yield executor


@pytest.fixture
def worker(tmp_path, monkeypatch) -> Path:
    """An empty input folder of a worker."""
    monkeypatch.setattr(payload, "_inputs_folder", lambda: tmp_path / "inputs")
    (tmp_path / "inputs").mkdir()
    return tmp_path / "inputs"


def test_study_on_a_cluster_equals_local_study(cluster, tmp_path):
    study = load(write(tmp_path) / "study.toml")
    run(study, tmp_path / "local", jobs=1)
    run(study, tmp_path / "cluster", executor=cluster)
    assert content(tmp_path / "cluster") == content(tmp_path / "local")


@pytest.mark.parametrize("where", ["local", "cluster"])
def test_error_names_task_and_file_on_any_executor(where, cluster, tmp_path):
    (tmp_path / "empty.txt").touch()
    executor = cluster if where == "cluster" else Local(1)
    store = Store(tmp_path / where)
    with store.writing(), pytest.raises(InputError, match=r"nothing in .*empty\.txt \(in cell empty"):
        TaskRunner(store, executor).run(Lengths(), [str(tmp_path / "empty.txt")])
    with (
        store.writing(),
        pytest.raises(PolicyError, match=r"task_types.py, line \d+, in run: ZeroDivisionError[^#]*\(in cell n=3\)"),
    ):
        TaskRunner(store, executor).run(Squares(failing=3), [1, 2, 3])


def test_worker_with_other_versions_is_an_error(cluster, tmp_path, monkeypatch):
    other = {**versions(), "numpy": "1.0"}
    monkeypatch.setattr("poolwise.runner.executors.cluster.versions", lambda: other)
    store = Store(tmp_path)
    with store.writing(), pytest.raises(InputError, match=r"different versions: numpy \d.* instead of 1\.0"):
        TaskRunner(store, cluster).run(Squares(), [1])


def test_executor_that_cannot_be_opened_is_an_error(monkeypatch):
    cases = [
        (InputError, "no address of a Dask cluster", dict(name="dask")),
        (InputError, "a cluster determines its number of processes", dict(name="dask", address="tcp://127.0.0.1:1", jobs=2)),
        (InputError, "no Dask scheduler responds", dict(name="dask", address="tcp://127.0.0.1:1")),
        (UnknownNameError, "unknown executor", dict(name="desk")),
        (InputError, "jobs must be at least 1, got 0", dict(jobs=0)),
    ]
    monkeypatch.setattr("poolwise.runner.executors.dask.CONNECT_S", 0.5)
    for kind, expected, given_ in cases:
        with pytest.raises(kind, match=expected), find_executor(**given_):
            pass
    monkeypatch.setattr("poolwise.runner.executors.find_spec", lambda name: None)
    with pytest.raises(InputError, match="the package distributed is missing"), find_executor("dask", "tcp://here:1"):
        pass


def test_payload_contains_files_wherever_strings_name_them(tmp_path, worker):
    log, code = tmp_path / 'log "é" 1.csv', tmp_path / "own.py"
    log.write_bytes(b"1,2,3")
    code.write_text("class Order: ...")
    shipped = next((catalog.FOLDER / "machines").iterdir())
    thing = {
        "path": log,
        "text": str(log),
        "own": f"{code}:Order",
        "settings": canonical({"a": [str(log), "/no/such/file", 'say "/hello"'], "b": f"{code}:Order"}),
        "shipped": str(shipped),
        "others": ["catalog:x", "/", "a/b", str(tmp_path), 7, f"see {log}", "/" + 300 * "a"],
    }
    packed: Payload = pickle.loads(pickle.dumps(Payload.of(thing)))
    assert dict(packed.files) == {digest(path.read_bytes()): path for path in (log, code)}
    for sha256, path in packed.files.items():
        store_file(sha256, path.name, path.read_bytes())
    opened = packed.open()
    log_copy, code_copy = (worker / digest(path.read_bytes()) / path.name for path in (log, code))
    assert (opened["path"], opened["text"], opened["own"]) == (log_copy, str(log_copy), f"{code_copy}:Order")
    assert json.loads(opened["settings"]) == {"a": [str(log_copy), "/no/such/file", 'say "/hello"'], "b": f"{code_copy}:Order"}
    assert (opened["shipped"], opened["others"]) == (thing["shipped"], thing["others"])
    assert log_copy.read_bytes() == b"1,2,3"


NESTED = st.recursive(
    st.text() | st.text("/\"ab'{[\\n:.", max_size=12) | st.integers() | st.none(),
    lambda inner: st.lists(inner),
)


@settings(max_examples=50)
@given(NESTED)
def test_payload_without_files_is_unchanged(thing):
    packed = Payload.of({"plain": thing, "json": canonical(thing)})
    assert packed.open() == {"plain": thing, "json": canonical(thing)} and not packed.files


def test_damaged_file_on_a_worker_is_written_again(worker):
    sha256 = digest(b"right")
    store_file(sha256, "f", b"right")
    (worker / sha256 / "f").write_bytes(b"wrong")
    store_file(sha256, "f", b"right")
    assert (worker / sha256 / "f").read_bytes() == b"right"


@pytest.mark.long
def test_run_continues_after_a_process_whose_memory_grew_is_replaced():
    results = [*Local(2).results(Growing(), {str(n): n for n in range(6)})]
    assert len(results) == 6 and len({result.record.content["process"] for result in results}) > 2


@pytest.mark.long
def test_tasks_of_a_dead_local_process_run_again(tmp_path, monkeypatch):
    results = [*Local(2).results(Mortal(tmp_path), {"1": 1, "2": 2, "3": 3})]
    assert sorted(result.record.content["n"] for result in results) == [1, 2, 3]
    monkeypatch.setattr("poolwise.runner.executors.local.DEATHS", 1)
    with pytest.raises(PoolwiseError, match="memory ran out"):
        [*Local(2).results(Deadly(), {"1": 1, "2": 2})]
