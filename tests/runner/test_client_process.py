"""Cluster connection in a client process: its death counts as a lost connection, its errors are passed on."""

import pytest

from poolwise.errors import InputError
from poolwise.runner.executors import client_process
from poolwise.runner.executors.client_process import ClientProcessConnection
from poolwise.runner.executors.cluster import Cluster, ConnectionLost
from tests.helpers.task_types import Squares

MODULE = "tests.helpers.dying_client"


def cluster_at(*addresses: str) -> tuple[Cluster, list[ClientProcessConnection]]:
    """Return a cluster that connects to one address after the other, and the list of its connections."""
    made, left = [], iter(addresses)

    class Here(Cluster):
        def connect(self):
            made.append(ClientProcessConnection(MODULE, next(left)))
            return made[-1]

    return Here("here"), made


def test_tasks_are_submitted_again_after_the_client_died():
    cluster_, made = cluster_at("7", "9", "inf")
    with cluster_ as executor:
        found = [*executor.results(Squares(), {str(k): k for k in range(20)})]
    assert sorted(one.record.content["square"] for one in found) == [k**2 for k in range(20)], "each returns once"
    assert len(made) == 3 and all(one._process.poll() is not None for one in made), "no process is left"


def test_client_survives_cancellation_and_ends_with_the_cluster():
    cluster_, made = cluster_at("inf")
    with cluster_ as executor:
        results = executor.results(Squares(), {str(k): k for k in range(9)})
        next(results)
        results.close()
        assert made[0].processes() == 2, "it still answers"
    assert made[0]._process.poll() == 0


def test_errors_of_a_task_are_passed_on():
    cluster_, _ = cluster_at("inf")
    with cluster_ as executor, pytest.raises(Exception, match=r"(?s)ZeroDivisionError.*in cell n=3"):
        [*executor.results(Squares(failing=3), {str(k): k for k in range(5)})]


def test_client_passes_on_errors_and_counts_as_lost_when_it_dies_or_hangs(monkeypatch):
    with pytest.raises(InputError, match="no cluster answers"):
        ClientProcessConnection(MODULE, "refuses")
    with pytest.raises(ConnectionLost):
        ClientProcessConnection(MODULE, "gone")
    with pytest.raises(ConnectionLost):
        ClientProcessConnection(MODULE, "dies")
    monkeypatch.setattr(client_process, "ANSWER_S", 0.2)
    with pytest.raises(ConnectionLost):
        ClientProcessConnection(MODULE, "hangs")


def test_interrupt_between_request_and_reply_ends_the_client(monkeypatch):
    """Otherwise the next request would receive this one's reply."""
    connection = ClientProcessConnection(MODULE, "inf")

    def interrupt(wait_s):
        raise KeyboardInterrupt

    monkeypatch.setattr(connection._pipe, "poll", interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        connection.processes()
    connection.cancel([])
    with pytest.raises(ConnectionLost):
        connection.processes()
    connection.close()
    assert connection._process.poll() is not None
