"""Host ports: two pods on a node must not use the same port of the same address."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from poolwise.live.kubernetes.objects.pod import Pod

ANY_ADDRESS = "0.0.0.0"


class HostPort(NamedTuple):
    """A port of a node that a pod uses."""

    address: str
    protocol: str
    number: int

    def __str__(self) -> str:
        return f"{self.protocol} {self.number}" + ("" if self.address == ANY_ADDRESS else f" of {self.address}")


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of the containers and sidecars of a pod; init containers that end do not count."""
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return tuple(
        HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def conflicting_port(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> HostPort | None:
    """Return the first wanted port that is in use, or None. The address 0.0.0.0 stands for every address."""
    addresses: dict[tuple[str, int], set[str]] = {}
    for port in used:
        addresses.setdefault((port.protocol, port.number), set()).add(port.address)
    for port in wanted:
        others = addresses.get((port.protocol, port.number), set())
        if others and (port.address == ANY_ADDRESS or ANY_ADDRESS in others or port.address in others):
            return port
    return None
