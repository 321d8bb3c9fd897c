"""What goes over the links of nodes, as node agents publish it: devices of a driver of its own, which no class selects.

The load of a link is what `performance.link_load` says of used and of whole bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from poolwise.live.kubernetes.objects import ResourceSlice
from poolwise.live.kubernetes.quantity import megabytes_a_second
from poolwise.performance.link_load import link_loads

USED = "usedMegabytesPerSecond"
"""Attribute of a link: MB/s in its busier direction, whole, of late."""
BANDWIDTH = "bandwidth"
_PREFIX = "links."


def links_driver(driver: str) -> str:
    """The driver under which a node agent's links are published, apart from its devices."""
    return f"{_PREFIX}{driver}"


def tells_links(slice: ResourceSlice) -> bool:
    """Whether a slice tells of links, and not of devices."""
    return slice.spec.driver.startswith(_PREFIX)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went over a link of late.

    Attributes
    ----------
    used : MB/s in the busier direction
    bandwidth : MB/s
    """

    used: float
    bandwidth: float

    @property
    def load(self) -> float:
        """Share of the bandwidth that is used, 0 to 1."""
        return float(link_loads(np.array([self.used]), np.array([self.bandwidth]))[0])

    @property
    def percent(self) -> int:
        """The load in whole percent."""
        return round(100 * self.load)


def measured_links(slices: Iterable[ResourceSlice]) -> Mapping[str, Traffic]:
    """Traffic of each node's busiest link, as node agents have published it: node -> traffic; slices of devices say nothing.

    Where a node has several links, the one with the highest load speaks for it.
    """
    found: dict[str, Traffic] = {}
    for one in slices:
        if not tells_links(one) or one.spec.node_name is None:
            continue
        for device in one.spec.devices:
            used = device.attributes.get(USED, {}).get("int")
            bandwidth = device.capacity.get(BANDWIDTH)
            if isinstance(used, int) and bandwidth is not None:
                traffic = Traffic(float(used), float(megabytes_a_second(bandwidth.value)))
                if one.spec.node_name not in found or traffic.load > found[one.spec.node_name].load:
                    found[one.spec.node_name] = traffic
    return found
