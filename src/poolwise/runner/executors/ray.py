"""Workers of a Ray cluster."""

from __future__ import annotations

import socket

from poolwise.errors import InputError
from poolwise.runner.executors.client_process import ClientProcessConnection
from poolwise.runner.executors.cluster import Cluster, Connection, ConnectionLost

KNOCK_S = 5.0
"""How long a head may take to accept a connection."""


class RayCluster(Cluster):
    """A Ray cluster: "HOST:6379" from one of its own computers, "ray://HOST:10001" from any."""

    def connect(self) -> Connection:
        """Connect; raises InputError if no cluster answers."""
        _knock(self.address)
        try:
            return ClientProcessConnection("poolwise.runner.executors.ray_client", self.address)
        except ConnectionLost as error:
            raise no_cluster(self.address, "its client ended without a word") from error


def no_cluster(address: str, said: str) -> InputError:
    """The error where no cluster answers."""
    return InputError(f"no Ray cluster answers: {said}", field=address, remedy="start one with: ray start --head")


def _knock(address: str) -> None:
    """Raise InputError where nobody listens at an address: Ray itself waits minutes for what is not there."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), KNOCK_S).close()
        except (OSError, OverflowError) as error:
            raise no_cluster(address, str(error)) from error
