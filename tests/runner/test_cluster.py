"""Submission and resubmission of tasks on a cluster that loses workers and connections."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError, PoolwiseError
from poolwise.runner.executors import cluster
from poolwise.runner.executors.cluster import AHEAD, DEATHS, Cluster, ConnectionLost, WorkerLost
from tests.helpers.task_types import Lengths, Squares


class Lossy:
    """Connection that runs submitted tasks when polled, or loses them."""

    def __init__(self, fate: Callable[[], str], workers: int = 3) -> None:
        self.fate, self.workers = fate, workers
        self.submitted, self.uploaded, self.sent, self.most = {}, [], 0, 0

    def processes(self):
        return self.workers

    def upload(self, sha256, content):
        self.uploaded.append(sha256)
        return content

    def submit(self, work, task, pieces):
        self.sent += 1
        self.submitted[self.sent] = lambda: work(task, *pieces)
        self.most = max(self.most, len(self.submitted))
        return self.sent

    def finished(self, wait_s):
        if not self.workers:
            return
        for ticket in [*self.submitted][-2:]:  # the latest first: in any order
            what = self.fate()
            if what == "gone":
                raise ConnectionLost
            run = self.submitted.pop(ticket)
            yield ticket, WorkerLost("killed") if what == "killed" else run()

    def cancel(self, tickets):
        self.submitted.clear()

    def close(self):
        pass


def lossy(fate: Callable[[], str], workers: int = 3) -> tuple[Cluster, list[Lossy]]:
    """Return a cluster, and the list of connections made to it."""
    made = []

    class Here(Cluster):
        def connect(self):
            made.append(Lossy(fate, workers))
            return made[-1]

    return Here("here"), made


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["done"] * 4 + ["killed", "gone"]), max_size=40), st.integers(0, 12))
def test_each_task_returns_once_whatever_is_lost(fates, n):
    left = iter(fates)
    cluster_, made = lossy(lambda: next(left, "done"))
    tasks = {str(k): k for k in range(n)}
    try:
        with cluster_ as executor:
            results = [*executor.results(Squares(), tasks)]
    except PoolwiseError as error:
        assert "workers repeatedly died" in str(error) and fates.count("killed") >= DEATHS
        return
    assert sorted((result.key, result.record.content["square"]) for result in results) == sorted(
        (k, int(k) ** 2) for k in tasks
    )
    assert all(len(set(worker.uploaded)) == len(worker.uploaded) and worker.most <= AHEAD * 3 for worker in made)


def test_inputs_are_uploaded_once_per_connection(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * (2 * cluster.PIECE + 1))
    cluster_, made = lossy(lambda: "done")
    with cluster_ as executor:
        for _ in range(2):
            (result,) = executor.results(Lengths(), {"a": str(tmp_path / "a.txt")})
            assert result.record.content == {"length": 2 * cluster.PIECE + 1}
    assert len(made) == 1 and len(made[0].uploaded) == 1 + 3, "the task type, and three pieces"


def test_closed_results_cancel_submitted_tasks():
    cluster_, made = lossy(lambda: "done")
    with cluster_ as executor:
        results = executor.results(Squares(), {str(k): k for k in range(9)})
        next(results)
        assert made[0].submitted
        results.close()
    assert not made[0].submitted and made[0].sent <= AHEAD * 3


def test_cluster_without_workers_is_an_error(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.0)
    clock = iter(range(1000))
    monkeypatch.setattr(cluster.time, "monotonic", lambda: 10.0 * next(clock))
    cluster_, _ = lossy(lambda: "done", workers=0)
    with cluster_ as executor, pytest.raises(InputError, match="no worker was available for"):
        [*executor.results(Squares(), {"1": 1})]


def test_cluster_that_stays_gone_is_an_error(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.0)
    cluster_, _ = lossy(lambda: "gone")
    with cluster_ as executor:
        cluster_.connect = refuse  # type: ignore[method-assign]
        with pytest.raises(InputError, match="no cluster"):
            [*executor.results(Squares(), {"1": 1})]


def refuse():
    raise InputError("no cluster", remedy="start one")
