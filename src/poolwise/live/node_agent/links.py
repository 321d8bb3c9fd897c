"""How loaded a node's links are, by its counters of bytes, and the slice that tells schedulers.

A link is as busy as its busier direction.
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
from poolwise.live.node_agent.commands import run_command
from poolwise.live.node_agent.config import LinkSection, MeasureLinksSection
from poolwise.live.node_agent.slices import Specs, attribute_of, spec_of
from poolwise.units import to_seconds

_SYSTEM = Path("/sys/class/net")
_LIMIT_S = 5.0
_TWO = re.compile(r"\s*(\d{1,20})\s+(\d{1,20})\s*")


class CounterError(PoolwiseError):
    """The counters of a link cannot be read."""


class LinkMeter:
    """Measures links from counters that grow; rates are averages since the last look.

    Parameters
    ----------
    clock
        Seconds, monotonic.
    """

    def __init__(
        self, section: MeasureLinksSection, clock: Callable[[], float] = time.monotonic, system: Path = _SYSTEM
    ) -> None:
        self.section, self._clock, self._system = section, clock, system
        self._last: dict[str, tuple[float, tuple[int, int]]] = {}
        self._shown: dict[str, LinkTraffic] = {}

    async def look(self) -> Mapping[str, LinkTraffic]:
        """Traffic of each link since the last look; a link that was not looked at before, or cannot be read, is left out."""
        found = {}
        for link in self.section.link:
            try:
                counted = await self._count(link)
            except PoolwiseError as error:
                log_event("a link cannot be read", logging.WARNING, link=link.name, why=str(error))
                self._last.pop(link.name, None)
                continue
            now = self._clock()
            before = self._last.get(link.name)
            self._last[link.name] = now, counted
            if before is None or now <= before[0] or any(new < old for new, old in zip(counted, before[1], strict=True)):
                continue  # the first look, or counters that began anew
            grown = max(new - old for new, old in zip(counted, before[1], strict=True))
            found[link.name] = LinkTraffic(grown / (now - before[0]) / 1e6, float(link.bandwidth))
        return found

    def worth_telling(self, found: Mapping[str, LinkTraffic]) -> Mapping[str, LinkTraffic]:
        """What to publish: a link's traffic as it was last told until its load has moved by the file's `percent`."""
        for name, traffic in found.items():
            told = self._shown.get(name)
            if told is None or abs(traffic.percent - told.percent) >= self.section.percent:
                self._shown[name] = traffic
        self._shown = {name: traffic for name, traffic in self._shown.items() if name in self._last}
        return self._shown

    async def _count(self, link: LinkSection) -> tuple[int, int]:
        if link.command:
            text = await run_command(link.command, min(_LIMIT_S, to_seconds(self.section.every)))
        else:
            folder = self._system / link.interface / "statistics"
            try:
                text = " ".join((folder / name).read_text() for name in ("rx_bytes", "tx_bytes"))
            except OSError as error:
                raise CounterError(f"{folder}: {error.strerror}") from error
        match = _TWO.fullmatch(text)
        if match is None:
            raise CounterError(f"{text[:80]!r} is not two numbers of bytes")
        return int(match[1]), int(match[2])


def link_specs(driver: str, node: str, traffic: Mapping[str, LinkTraffic]) -> Specs:
    """What a node publishes of its links: a device for each, with its bandwidth and what is used of it."""
    devices = [
        {
            "name": name,
            "attributes": {USED: attribute_of(round(one.used)), "loadPercent": attribute_of(one.percent)},
            "capacity": {BANDWIDTH: {"value": f"{round(one.bandwidth)}M"}},
        }
        for name, one in sorted(traffic.items())
    ]
    return {node: spec_of(links_driver(driver), node, {"nodeName": node}, devices)} if devices else {}
