"""A connection in a process of its own: its death costs what was on its way, and is told from what it refuses."""

import pytest

from poolwise.errors import InputError
from poolwise.runner.executors import client_process
from poolwise.runner.executors.client_process import ClientProcessConnection
from poolwise.runner.executors.cluster import Cluster, ConnectionLost
from tests.helpers.benches import Squares

MODULE = "tests.helpers.dying_client"


def apart_at(*addresses: str) -> tuple[Cluster, list[ClientProcessConnection]]:
    """A cluster that is found at one address after the other, and the connections that were made to it."""
    made, left = [], iter(addresses)

    class Here(Cluster):
        def connect(self):
            made.append(ClientProcessConnection(MODULE, next(left)))
            return made[-1]

    return Here("here"), made


def test_what_was_on_its_way_when_the_client_died_is_sent_again():
    there, made = apart_at("7", "9", "inf")
    with there as executor:
        found = [*executor.results(Squares(), {str(k): k for k in range(20)})]
    assert sorted(one.record.content["square"] for one in found) == [k**2 for k in range(20)], "each comes back once"
    assert len(made) == 3 and all(one._process.poll() is not None for one in made), "none is left behind"


def test_what_is_given_up_early_ends_the_client():
    there, made = apart_at("inf")
    with there as executor:
        results = executor.results(Squares(), {str(k): k for k in range(9)})
        next(results)
        results.close()
        assert made[0].processes() == 2, "it answers still"
    assert made[0]._process.poll() == 0


def test_errors_of_a_trial_arrive_as_they_are():
    there, _ = apart_at("inf")
    with there as executor, pytest.raises(Exception, match=r"(?s)ZeroDivisionError.*in the cell n=3"):
        [*executor.results(Squares(failing=3), {str(k): k for k in range(5)})]


def test_a_client_that_refuses_says_why_and_one_that_dies_or_hangs_is_lost(monkeypatch):
    with pytest.raises(InputError, match="nobody is there"):
        ClientProcessConnection(MODULE, "refuses")
    with pytest.raises(ConnectionLost):
        ClientProcessConnection(MODULE, "gone")
    with pytest.raises(ConnectionLost):
        ClientProcessConnection(MODULE, "dies")
    monkeypatch.setattr(client_process, "ANSWER_S", 0.2)
    with pytest.raises(ConnectionLost):
        ClientProcessConnection(MODULE, "hangs")


def test_an_interrupt_between_question_and_answer_ends_the_client(monkeypatch):
    """Otherwise the next question would get this one's answer."""
    connection = ClientProcessConnection(MODULE, "inf")

    def interrupt(wait_s):
        raise KeyboardInterrupt

    monkeypatch.setattr(connection._pipe, "poll", interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        connection.processes()
    connection.give_up([])
    with pytest.raises(ConnectionLost):
        connection.processes()
    connection.close()
    assert connection._process.poll() is not None
