"""Cluster client process that dies as its address says: while it connects, or at the N-th task."""

import os
import pickle
import time

from poolwise.errors import InputError
from poolwise.runner.executors.client_process import serve
from poolwise.runner.executors.cluster import ConnectionLost


class Dying:
    """Connection that runs submitted tasks when polled, and dies at the `last`-th task."""

    def __init__(self, last):
        self.last, self.sent, self.submitted = last, 0, {}

    def processes(self):
        return 2

    def upload(self, sha256, content):
        return content

    def submit(self, work, task, pieces):
        self.sent += 1
        self.submitted[f"task {self.sent}"] = lambda: work(task, *pieces)
        return f"task {self.sent}"

    def finished(self, wait_s):
        if self.sent >= self.last:
            os._exit(1)
        for ticket in [*self.submitted]:
            yield ticket, self.submitted.pop(ticket)()

    def cancel(self, tickets):
        for ticket in tickets:
            del self.submitted[ticket]

    def close(self):
        pass


def connect(address):
    if address == "dies":
        os._exit(1)
    if address == "hangs":
        time.sleep(60)
    if address == "refuses":
        raise InputError("no cluster answers", remedy="start one")
    if address == "gone":
        raise ConnectionLost
    return Dying(float(address))


if __name__ == "__main__":
    serve(connect, pickle.dumps)
