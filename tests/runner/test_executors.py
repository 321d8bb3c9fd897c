"""Executors: whoever computes, the same comes back. Real clusters of several processes: tests/live/executors."""

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
from poolwise.runner import Executor, Local, Store, find_executor, run_missing
from poolwise.runner.executors import payload
from poolwise.runner.executors.payload import Payload, keep_file
from poolwise.runner.executors.remote_task import versions
from poolwise.studies import load, run
from tests.helpers.benches import Deadly, Lengths, Mortal, Squares
from tests.helpers.kept_trials import content
from tests.helpers.small_study import write


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    """A Dask cluster within this process."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as there,
        find_executor("dask", there.scheduler_address) as executor,
    ):
        yield executor


@pytest.fixture
def worker(tmp_path, monkeypatch) -> Path:
    """The folder of files of a worker that has none."""
    monkeypatch.setattr(payload, "_kept", lambda: tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


def test_a_study_on_a_cluster_is_that_on_this_computer(cluster, tmp_path):
    study = load(write(tmp_path) / "study.toml")
    run(study, tmp_path / "here", jobs=1)
    run(study, tmp_path / "there", executor=cluster)
    assert content(tmp_path / "there") == content(tmp_path / "here")


@pytest.mark.parametrize("where", ["here", "there"])
def test_an_error_names_the_trial_and_the_file_wherever_it_happens(where, cluster, tmp_path):
    (tmp_path / "empty.txt").touch()
    executor = cluster if where == "there" else Local(1)
    store = Store(tmp_path / where)
    with store.writing(), pytest.raises(InputError, match=r"nothing in .*empty\.txt \(in the cell empty"):
        run_missing(Lengths(), [str(tmp_path / "empty.txt")], store, executor)
    with (
        store.writing(),
        pytest.raises(PolicyError, match=r"benches.py, line \d+, in run: ZeroDivisionError[^#]*\(in the cell n=3\)"),
    ):
        run_missing(Squares(failing=3), [1, 2, 3], store, executor)


def test_a_worker_of_other_versions_is_refused(cluster, tmp_path, monkeypatch):
    other = {**versions(), "numpy": "1.0"}
    monkeypatch.setattr("poolwise.runner.executors.cluster.versions", lambda: other)
    store = Store(tmp_path)
    with store.writing(), pytest.raises(InputError, match=r"other versions: numpy \d.* instead of 1\.0"):
        run_missing(Squares(), [1], store, cluster)


def test_what_cannot_be_opened_is_said(monkeypatch):
    cases = [
        (InputError, "no dask cluster is named", dict(name="dask")),
        (InputError, "as many processes as it has workers", dict(name="dask", address="tcp://127.0.0.1:1", jobs=2)),
        (InputError, "no Dask scheduler answers", dict(name="dask", address="tcp://127.0.0.1:1")),
        (UnknownNameError, "unknown executor", dict(name="desk")),
        (InputError, "0 processes", dict(jobs=0)),
    ]
    monkeypatch.setattr("poolwise.runner.executors.dask.CONNECT_S", 0.5)
    for kind, said, given_ in cases:
        with pytest.raises(kind, match=said), find_executor(**given_):
            pass
    monkeypatch.setattr("poolwise.runner.executors.lookup.find_spec", lambda name: None)
    with pytest.raises(InputError, match="the package distributed is missing"), find_executor("dask", "tcp://here:1"):
        pass


def test_files_travel_by_what_is_in_them_wherever_a_text_names_them(tmp_path, worker):
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
        keep_file(sha256, path.name, path.read_bytes())
    found = packed.open()
    there, own = (worker / digest(path.read_bytes()) / path.name for path in (log, code))
    assert (found["path"], found["text"], found["own"]) == (there, str(there), f"{own}:Order")
    assert json.loads(found["settings"]) == {"a": [str(there), "/no/such/file", 'say "/hello"'], "b": f"{own}:Order"}
    assert (found["shipped"], found["others"]) == (thing["shipped"], thing["others"])
    assert there.read_bytes() == b"1,2,3"


NESTED = st.recursive(
    st.text() | st.text("/\"ab'{[\\n:.", max_size=12) | st.integers() | st.none(),
    lambda inner: st.lists(inner),
)


@settings(max_examples=50)
@given(NESTED)
def test_what_names_no_file_comes_as_it_is(thing):
    packed = Payload.of({"plain": thing, "json": canonical(thing)})
    assert packed.open() == {"plain": thing, "json": canonical(thing)} and not packed.files


def test_a_file_that_was_damaged_on_a_worker_is_written_again(worker):
    sha256 = digest(b"right")
    keep_file(sha256, "f", b"right")
    (worker / sha256 / "f").write_bytes(b"wrong")
    keep_file(sha256, "f", b"right")
    assert (worker / sha256 / "f").read_bytes() == b"right"


def test_a_process_of_this_computer_that_dies_costs_what_it_ran(tmp_path, monkeypatch):
    found = [*Local(2).results(Mortal(tmp_path), {"1": 1, "2": 2, "3": 3})]
    assert sorted(one.record.content["n"] for one in found) == [1, 2, 3]
    monkeypatch.setattr("poolwise.runner.executors.local.DEATHS", 1)
    with pytest.raises(PoolwiseError, match="memory runs out"):
        [*Local(2).results(Deadly(), {"1": 1, "2": 2})]
