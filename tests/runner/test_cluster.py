"""What is sent to a cluster and sent again: on one that loses workers, and itself, as a test says."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError, PoolwiseError
from poolwise.runner.executors import cluster
from poolwise.runner.executors.cluster import AHEAD, DEATHS, Cluster, ConnectionLost, WorkerLost
from tests.helpers.benches import Lengths, Squares


class Lossy:
    """A connection that runs what it is given when it is asked, or loses it."""

    def __init__(self, fate: Callable[[], str], workers: int = 3) -> None:
        self.fate, self.workers = fate, workers
        self.flying, self.put_here, self.sent, self.most = {}, [], 0, 0

    def processes(self):
        return self.workers

    def put(self, sha256, content):
        self.put_here.append(sha256)
        return content

    def send(self, work, errand, pieces):
        self.sent += 1
        self.flying[self.sent] = lambda: work(errand, *pieces)
        self.most = max(self.most, len(self.flying))
        return self.sent

    def finished(self, wait_s):
        if not self.workers:
            return
        for ticket in [*self.flying][-2:]:  # the latest first: in any order
            what = self.fate()
            if what == "gone":
                raise ConnectionLost
            act = self.flying.pop(ticket)
            yield ticket, WorkerLost("killed") if what == "killed" else act()

    def give_up(self, tickets):
        self.flying.clear()

    def close(self):
        pass


def lossy(fate: Callable[[], str], workers: int = 3) -> tuple[Cluster, list[Lossy]]:
    """A cluster, and the connections that were made to it."""
    made = []

    class Here(Cluster):
        def connect(self):
            made.append(Lossy(fate, workers))
            return made[-1]

    return Here("here"), made


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["done"] * 4 + ["killed", "gone"]), max_size=40), st.integers(0, 12))
def test_each_trial_comes_back_once_whatever_is_lost(fates, n):
    left = iter(fates)
    there, made = lossy(lambda: next(left, "done"))
    trials = {str(k): k for k in range(n)}
    try:
        with there as executor:
            found = [*executor.results(Squares(), trials)]
    except PoolwiseError as error:
        assert "workers died again and again" in str(error) and fates.count("killed") >= DEATHS
        return
    assert sorted((one.key, one.record.content["square"]) for one in found) == sorted((k, int(k) ** 2) for k in trials)
    assert all(len(set(one.put_here)) == len(one.put_here) and one.most <= AHEAD * 3 for one in made)


def test_inputs_are_put_once_for_all_that_is_run_over_a_connection(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * (2 * cluster.PIECE + 1))
    there, made = lossy(lambda: "done")
    with there as executor:
        for _ in range(2):
            (found,) = executor.results(Lengths(), {"a": str(tmp_path / "a.txt")})
            assert found.record.content == {"length": 2 * cluster.PIECE + 1}
    assert len(made) == 1 and len(made[0].put_here) == 1 + 3, "the bench, and three pieces"


def test_what_is_given_up_early_is_cancelled():
    there, made = lossy(lambda: "done")
    with there as executor:
        results = executor.results(Squares(), {str(k): k for k in range(9)})
        next(results)
        assert made[0].flying
        results.close()
    assert not made[0].flying and made[0].sent <= AHEAD * 3


def test_a_cluster_without_workers_is_said(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.0)
    clock = iter(range(1000))
    monkeypatch.setattr(cluster.time, "monotonic", lambda: 10.0 * next(clock))
    there, _ = lossy(lambda: "done", workers=0)
    with there as executor, pytest.raises(InputError, match="no worker for"):
        [*executor.results(Squares(), {"1": 1})]


def test_a_cluster_that_does_not_come_back_is_said(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.0)
    there, _ = lossy(lambda: "gone")
    with there as executor:
        there.connect = refuse  # type: ignore[method-assign]
        with pytest.raises(InputError, match="no cluster"):
            [*executor.results(Squares(), {"1": 1})]


def refuse():
    raise InputError("no cluster", remedy="start one")
