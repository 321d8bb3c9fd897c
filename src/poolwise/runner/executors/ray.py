"""Executor on a Ray cluster."""

from __future__ import annotations

import socket

from poolwise.errors import InputError
from poolwise.runner.executors.client_process import ClientProcessConnection
from poolwise.runner.executors.cluster import Cluster, Connection, ConnectionLost

CONNECT_S = 5.0
"""Timeout for connecting to the head node, s."""


class RayCluster(Cluster):
    """A Ray cluster: "HOST:6379" from a computer of the cluster, "ray://HOST:10001" from any computer."""

    def connect(self) -> Connection:
        """Connect; raises InputError if no cluster answers."""
        _check_listening(self.address)
        try:
            return ClientProcessConnection("poolwise.runner.executors.ray_client", self.address)
        except ConnectionLost as error:
            raise no_cluster(self.address, "its client ended without a message") from error


def no_cluster(address: str, reason: str) -> InputError:
    """Return the error for an unreachable cluster."""
    return InputError(f"no Ray cluster answers: {reason}", field=address, remedy="start one with: ray start --head")


def _check_listening(address: str) -> None:
    """Raise InputError if no process listens at an address; Ray itself would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), CONNECT_S).close()
        except (OSError, OverflowError) as error:
            raise no_cluster(address, str(error)) from error
