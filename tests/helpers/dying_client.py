"""A client of a cluster in a process of its own, which dies as its address says: while it connects, or at the N-th trial."""

import os
import pickle
import time

from poolwise.errors import InputError
from poolwise.runner.executors.client_process import serve
from poolwise.runner.executors.cluster import ConnectionLost


class Dying:
    """Runs what it is sent when it is asked, and dies at the `last`-th trial."""

    def __init__(self, last):
        self.last, self.sent, self.flying = last, 0, {}

    def processes(self):
        return 2

    def put(self, sha256, content):
        return content

    def send(self, work, errand, pieces):
        self.sent += 1
        self.flying[f"trial {self.sent}"] = lambda: work(errand, *pieces)
        return f"trial {self.sent}"

    def finished(self, wait_s):
        if self.sent >= self.last:
            os._exit(1)
        for ticket in [*self.flying]:
            yield ticket, self.flying.pop(ticket)()

    def give_up(self, tickets):
        for ticket in tickets:
            del self.flying[ticket]

    def close(self):
        pass


def connect(address):
    if address == "dies":
        os._exit(1)
    if address == "hangs":
        time.sleep(60)
    if address == "refuses":
        raise InputError("nobody is there", remedy="start one")
    if address == "gone":
        raise ConnectionLost
    return Dying(float(address))


if __name__ == "__main__":
    serve(connect, pickle.dumps)
