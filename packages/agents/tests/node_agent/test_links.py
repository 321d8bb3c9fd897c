"""Tests of link loads from counters that increase, are reset, or are invalid, and of their publication to schedulers."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from poolwise.live.kubernetes.link_traffic import LinkTraffic, measured_links
from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise_agents.node_agent.config import LinkSection, MeasureLinksSection
from poolwise_agents.node_agent.links import LinkMeter, link_specs

SECOND = 10**9


class Counters:
    """Counter files as in /sys/class/net, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder / "eth0" / "statistics", 0.0
        self.folder.mkdir(parents=True)
        link = LinkSection(name="uplink", interface="eth0", bandwidth="1 GB/s")  # type: ignore[arg-type]
        self.meter = LinkMeter(MeasureLinksSection(link=(link,)), lambda: self.now, folder)

    def sample(self, seconds: float, received: int | str, sent: int) -> dict[str, LinkTraffic]:
        self.now += seconds
        (self.folder / "rx_bytes").write_text(f"{received}\n")
        (self.folder / "tx_bytes").write_text(f"{sent}\n")
        return dict(asyncio.run(self.meter.sample()))


def test_load_is_that_of_the_busier_direction_since_the_last_sample(tmp_path: Path) -> None:
    counters = Counters(tmp_path)
    assert counters.sample(1, 10**12, 5) == {}
    traffic = counters.sample(2, 10**12 + 10**9, 5 + 4 * 10**8)["uplink"]
    assert (traffic.used, traffic.bandwidth, traffic.load) == (500.0, 1000.0, 0.5)
    assert counters.sample(1, 10**12 + 10**9, 5 + 34 * 10**8)["uplink"].load == 1.0
    assert counters.sample(1, 7, 7) == {}, "a reset counter gives a load"
    assert counters.sample(1, 10**8 + 7, 7)["uplink"].load == 0.1


@pytest.mark.parametrize("invalid", ["", "many", "-1", "1e9", "9" * 30])
def test_link_with_invalid_counters_is_skipped_and_forgotten(tmp_path: Path, invalid: str) -> None:
    counters = Counters(tmp_path)
    counters.sample(1, 0, 0)
    counters.meter.to_publish(counters.sample(1, 10**8, 0))
    assert counters.sample(1, invalid, 0) == {} and counters.meter.to_publish({}) == {}
    assert counters.sample(1, 10**9, 0) == {}, "the first sample gives a load"
    assert counters.sample(1, 2 * 10**9, 0)["uplink"].load == 1.0


def test_only_sufficient_changes_are_published(tmp_path: Path) -> None:
    counters, total, published = Counters(tmp_path), 0, []
    counters.sample(1, 0, 0)
    for percent in (10, 12, 14, 15, 13, 9):
        total += percent * 10**7
        published.append(round(100 * counters.meter.to_publish(counters.sample(1, total, 0))["uplink"].load))
    assert published == [10, 10, 10, 15, 15, 9]


def test_counters_can_come_from_commands() -> None:
    command = LinkSection(name="ib", command=("/bin/echo", "12", "34"), bandwidth="1 GB/s")  # type: ignore[arg-type]
    broken = LinkSection(name="dead", command=("/bin/echo", "a lot"), bandwidth="1 GB/s")  # type: ignore[arg-type]
    meter = LinkMeter(MeasureLinksSection(link=(broken, command)))
    assert dict(asyncio.run(meter.sample())) == {}
    assert {name: traffic.used for name, traffic in asyncio.run(meter.sample()).items()} == {"ib": 0.0}


def test_published_links_are_read_back() -> None:
    slices = []
    for node, loads in {"n1": {"a": 100.0, "b": 700.0}, "n2": {"a": 0.0}, "n3": {}}.items():
        traffic = {name: LinkTraffic(used, 1000.0) for name, used in loads.items()}
        for specs in link_specs("gpu.example", node, traffic).values():
            slices += [{"metadata": {"name": node}, "spec": spec} for spec in specs]
    read = [msgspec.json.decode(json.dumps(resource_slice), type=ResourceSlice) for resource_slice in slices]
    assert measured_links(read) == {"n1": LinkTraffic(700.0, 1000.0), "n2": LinkTraffic(0.0, 1000.0)}
    read = [
        msgspec.structs.replace(resource_slice, spec=msgspec.structs.replace(resource_slice.spec, driver="gpu.example"))
        for resource_slice in read
    ]
    assert measured_links(read) == {}
