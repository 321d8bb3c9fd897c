"""Loads of links from counters that grow, begin anew, or are rubbish; and what schedulers read of them."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from poolwise.live.kubernetes.link_traffic import LinkTraffic, measured_links
from poolwise.live.kubernetes.objects import ResourceSlice
from poolwise.live.node_agent.config import LinkSection, MeasureLinksSection
from poolwise.live.node_agent.links import LinkMeter, link_specs

SECOND = 10**9


class Counters:
    """Files as in /sys/class/net, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder / "eth0" / "statistics", 0.0
        self.folder.mkdir(parents=True)
        link = LinkSection(name="uplink", interface="eth0", bandwidth="1 GB/s")  # type: ignore[arg-type]
        self.meter = LinkMeter(MeasureLinksSection(link=(link,)), lambda: self.now, folder)

    def look(self, seconds: float, received: int | str, sent: int) -> dict[str, LinkTraffic]:
        self.now += seconds
        (self.folder / "rx_bytes").write_text(f"{received}\n")
        (self.folder / "tx_bytes").write_text(f"{sent}\n")
        return dict(asyncio.run(self.meter.look()))


def test_the_busier_direction_since_the_last_look(tmp_path: Path) -> None:
    counters = Counters(tmp_path)
    assert counters.look(1, 10**12, 5) == {}
    found = counters.look(2, 10**12 + 10**9, 5 + 4 * 10**8)["uplink"]
    assert (found.used, found.bandwidth, found.load) == (500.0, 1000.0, 0.5)
    assert counters.look(1, 10**12 + 10**9, 5 + 34 * 10**8)["uplink"].load == 1.0
    assert counters.look(1, 7, 7) == {}, "the interface began anew"
    assert counters.look(1, 10**8 + 7, 7)["uplink"].load == 0.1


@pytest.mark.parametrize("rubbish", ["", "many", "-1", "1e9", "9" * 30])
def test_counters_that_cannot_be_read_are_left_out_and_forgotten(tmp_path: Path, rubbish: str) -> None:
    counters = Counters(tmp_path)
    counters.look(1, 0, 0)
    counters.meter.worth_telling(counters.look(1, 10**8, 0))
    assert counters.look(1, rubbish, 0) == {} and counters.meter.worth_telling({}) == {}
    assert counters.look(1, 10**9, 0) == {}, "a first look again"
    assert counters.look(1, 2 * 10**9, 0)["uplink"].load == 1.0


def test_only_what_moves_by_enough_is_told(tmp_path: Path) -> None:
    counters, total, told = Counters(tmp_path), 0, []
    counters.look(1, 0, 0)
    for percent in (10, 12, 14, 15, 13, 9):
        total += percent * 10**7
        told.append(round(100 * counters.meter.worth_telling(counters.look(1, total, 0))["uplink"].load))
    assert told == [10, 10, 10, 15, 15, 9]


def test_commands_are_counters_too() -> None:
    command = LinkSection(name="ib", command=("/bin/echo", "12", "34"), bandwidth="1 GB/s")  # type: ignore[arg-type]
    broken = LinkSection(name="dead", command=("/bin/echo", "a lot"), bandwidth="1 GB/s")  # type: ignore[arg-type]
    meter = LinkMeter(MeasureLinksSection(link=(broken, command)))
    assert dict(asyncio.run(meter.look())) == {}
    assert {name: one.used for name, one in asyncio.run(meter.look()).items()} == {"ib": 0.0}


def test_what_is_published_is_what_is_read() -> None:
    slices = []
    for node, loads in {"n1": {"a": 100.0, "b": 700.0}, "n2": {"a": 0.0}, "n3": {}}.items():
        traffic = {name: LinkTraffic(used, 1000.0) for name, used in loads.items()}
        for specs in link_specs("gpu.example", node, traffic).values():
            slices += [{"metadata": {"name": node}, "spec": spec} for spec in specs]
    read = [msgspec.json.decode(json.dumps(one), type=ResourceSlice) for one in slices]
    assert measured_links(read) == {"n1": LinkTraffic(700.0, 1000.0), "n2": LinkTraffic(0.0, 1000.0)}
    read = [msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, driver="gpu.example")) for one in read]
    assert measured_links(read) == {}
