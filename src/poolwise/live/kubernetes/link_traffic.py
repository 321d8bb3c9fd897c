"""Measured traffic of node links, which node agents publish as devices of a separate driver that no device class selects.

`performance.link_load` computes the load of a link from its used and its total bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise.live.kubernetes.quantity import exact_amount
from poolwise.performance.link_load import link_loads

USED = "usedMegabytesPerSecond"  # attribute of a link: recent traffic in its busier direction, in whole MB/s
BANDWIDTH = "bandwidth"
_PREFIX = "links."


def links_driver(driver: str) -> str:
    """Return the name of the driver under which a node agent publishes links, separate from its devices."""
    return f"{_PREFIX}{driver}"


def publishes_links(slice: ResourceSlice) -> bool:
    """Return whether a slice publishes links rather than devices."""
    return slice.spec.driver.startswith(_PREFIX)


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """Recent traffic of a link."""

    used: float  # traffic in the busier direction (MB/s)
    bandwidth: float  # bandwidth of the link (MB/s)

    @property
    def load(self) -> float:
        """Used share of the bandwidth, 0 to 1."""
        return float(link_loads(np.array([self.used]), np.array([self.bandwidth]))[0])

    @property
    def percent(self) -> int:
        """The load in whole percent."""
        return round(100 * self.load)


def measured_links(slices: Iterable[ResourceSlice]) -> Mapping[str, LinkTraffic]:
    """Return node -> traffic of its link with the highest load, from the slices of node agents; other slices are skipped."""
    busiest: dict[str, LinkTraffic] = {}
    for resource_slice in slices:
        if not publishes_links(resource_slice) or resource_slice.spec.node_name is None:
            continue
        for device in resource_slice.spec.devices:
            used = device.attributes.get(USED, {}).get("int")
            bandwidth = device.capacity.get(BANDWIDTH)
            if isinstance(used, int) and bandwidth is not None:
                traffic = LinkTraffic(float(used), float(exact_amount(BANDWIDTH, bandwidth.value)))
                if resource_slice.spec.node_name not in busiest or traffic.load > busiest[resource_slice.spec.node_name].load:
                    busiest[resource_slice.spec.node_name] = traffic
    return busiest
