"""Load of a node's links, measured with byte counters, and the slices that publish it to schedulers.

The load of a link is the load in its busier direction.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from poolwise.errors import PoolwiseError
from poolwise.live.kubernetes.link_traffic import BANDWIDTH, USED, LinkTraffic, links_driver
from poolwise.live.logs import log_event
from poolwise.quantities import to_seconds
from poolwise_agents.node_agent.commands import run_command
from poolwise_agents.node_agent.config import LinkSection, MeasureLinksSection
from poolwise_agents.node_agent.slices import Specs, attribute_of, pool_specs

_SYSTEM = Path("/sys/class/net")
_LIMIT_S = 5.0
_TWO_COUNTERS = re.compile(r"\s*(\d{1,20})\s+(\d{1,20})\s*")


class CounterError(PoolwiseError):
    """The counters of a link cannot be read."""


class LinkMeter:
    """Measures links with increasing counters; rates are averages since the last sample. `clock` is monotonic (s)."""

    def __init__(
        self, section: MeasureLinksSection, clock: Callable[[], float] = time.monotonic, system: Path = _SYSTEM
    ) -> None:
        self.section, self._clock, self._system = section, clock, system
        self._last: dict[str, tuple[float, tuple[int, int]]] = {}
        self._published: dict[str, LinkTraffic] = {}

    async def sample(self) -> Mapping[str, LinkTraffic]:
        """Return the traffic of each link since its last sample, except for links that lack a sample or cannot be read."""
        traffic = {}
        for link in self.section.link:
            try:
                counters = await self._read_counters(link)
            except PoolwiseError as error:
                log_event("link_read_failed", logging.WARNING, link=link.name, why=str(error))
                self._last.pop(link.name, None)
                continue
            now = self._clock()
            before = self._last.get(link.name)
            self._last[link.name] = now, counters
            if before is None or now <= before[0] or any(new < old for new, old in zip(counters, before[1], strict=True)):
                continue  # the first sample, or counters were reset
            grown = max(new - old for new, old in zip(counters, before[1], strict=True))
            traffic[link.name] = LinkTraffic(grown / (now - before[0]) / 1e6, float(link.bandwidth))
        return traffic

    def to_publish(self, measured: Mapping[str, LinkTraffic]) -> Mapping[str, LinkTraffic]:
        """Return the traffic to publish; a link's value changes only if its load moved by the configured `percent`."""
        for name, traffic in measured.items():
            published = self._published.get(name)
            if published is None or abs(traffic.percent - published.percent) >= self.section.percent:
                self._published[name] = traffic
        self._published = {name: traffic for name, traffic in self._published.items() if name in self._last}
        return self._published

    async def _read_counters(self, link: LinkSection) -> tuple[int, int]:
        if link.command:
            text = await run_command(link.command, min(_LIMIT_S, to_seconds(self.section.every)))
        else:
            folder = self._system / link.interface / "statistics"
            try:
                text = " ".join((folder / name).read_text() for name in ("rx_bytes", "tx_bytes"))
            except OSError as error:
                raise CounterError(f"{folder}: {error.strerror}") from error
        match = _TWO_COUNTERS.fullmatch(text)
        if match is None:
            raise CounterError(f"expected two byte counters, got {text[:80]!r}")
        return int(match[1]), int(match[2])


def link_specs(driver: str, node: str, traffic: Mapping[str, LinkTraffic]) -> Specs:
    """Return the specs of a node's links: one device per link, with its bandwidth and used bandwidth."""
    devices = [
        {
            "name": name,
            "attributes": {USED: attribute_of(round(link.used)), "loadPercent": attribute_of(link.percent)},
            "capacity": {BANDWIDTH: {"value": f"{round(link.bandwidth)}M"}},
        }
        for name, link in sorted(traffic.items())
    ]
    return {node: pool_specs(links_driver(driver), node, {"nodeName": node}, devices)} if devices else {}
