"""Tests of the plugin with a fake kubelet that sends repeated and invalid requests over the sockets."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from poolwise_agents.node_agent.agent import NodeAgent
from poolwise_agents.node_agent.plugin import KubeletPlugin
from tests.helpers.kubelet import Kubelet
from tests.helpers.node_agent import DRIVER, Hardware, MemoryCluster, claim_for, make_agent, publish_all

UID = "00000000-0000-4000-8000-000000000000"


@asynccontextmanager
async def served(folder: Path, cluster: MemoryCluster, hardware: Hardware, results: list[str]) -> AsyncIterator[NodeAgent]:
    await publish_all(cluster, folder)
    agent = make_agent(folder, cluster, hardware.run)
    cluster.sync()
    (folder / "registry").mkdir(exist_ok=True)
    plugin = KubeletPlugin(DRIVER, agent.prepare, agent.unprepare, results.append)
    async with plugin.serving(folder / "plugins", folder / "registry"):
        yield agent


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder with a short path, since socket paths have at most 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_plugin_registers_prepares_and_unprepares(short: Path) -> None:
    async def story() -> None:
        cluster, hardware, results = MemoryCluster(), Hardware(short / "hardware"), list[str]()
        async with served(short, cluster, hardware, results):
            kubelet = Kubelet(short / "registry")
            info = await kubelet.register()
            assert (info.type, info.name, [*info.supported_versions]) == ("DRAPlugin", DRIVER, ["v1.DRAPlugin"])
            await kubelet.register("no, thanks")
            assert results == ["", "no, thanks"]
            share = "11111111-2222-4333-8444-555555555555"
            train = "train", cluster.put(claim_for("train", "gpu-0", "gpu-1"))
            shared = "shared", cluster.put(claim_for("shared", "gpu-2", pool="lent", waits=False, shareID=share))
            for _ in range(2):
                response = await kubelet.prepare(train, shared, ("lost", UID))
                assert [answer.error for answer in (response.claims[train[1]], response.claims[shared[1]])] == ["", ""]
                assert "no longer exists" in response.claims[UID].error and not response.claims[UID].devices
                (first, second), (third,) = response.claims[train[1]].devices, response.claims[shared[1]].devices
                assert ([*first.request_names], first.pool_name, first.device_name) == (["gpu"], "gpu-a", "gpu-0")
                assert [*second.cdi_device_ids] == [f"{DRIVER}/claim={train[1]}-1"] and not first.HasField("share_id")
                assert third.share_id == share and [*third.cdi_device_ids] == [f"{DRIVER}/claim={shared[1]}-0"]
            for _ in range(2):
                released = await kubelet.unprepare(train, shared, ("never", UID))
                assert {uid: answer.error for uid, answer in released.claims.items()} == {train[1]: "", shared[1]: "", UID: ""}
            assert hardware.attached == {} and [*(short / "cdi").iterdir()] == []
            hardware.broken = {"/bin/detach"}
            await kubelet.prepare(train)
            assert "detaching gpu-0" in (await kubelet.unprepare(train)).claims[train[1]].error

    asyncio.run(story())


def test_hostile_names_are_rejected_without_side_effects(short: Path) -> None:
    async def story() -> None:
        cluster, hardware = MemoryCluster(), Hardware(short / "hardware")
        async with served(short, cluster, hardware, []):
            before = sorted(short.rglob("*"))
            kubelet = Kubelet(short / "registry")
            await kubelet.register()
            for uid in ("../../etc/passwd", "", "a\nb", "$(reboot)", "-rf", UID + "\n", "x" * 5000):
                assert "{claim.uid}" in (await kubelet.prepare(("train", uid))).claims[uid].error
                assert "{claim.uid}" in (await kubelet.unprepare(("train", uid))).claims[uid].error
            for name in ("../x", "a b", "a;b", "$HOME", "", "-x", "a/../b"):
                assert "{claim.name}" in (await kubelet.prepare((name, UID))).claims[UID].error
            assert sorted(short.rglob("*")) == before and hardware.calls == []

    asyncio.run(story())


def test_sockets_of_a_killed_agent_are_replaced_and_removed_at_the_end(short: Path) -> None:
    async def story() -> None:
        cluster, hardware = MemoryCluster(), Hardware(short / "hardware")
        (short / "registry").mkdir()
        (short / "registry" / f"{DRIVER}-reg.sock").touch()
        async with served(short, cluster, hardware, []):
            assert (await Kubelet(short / "registry").register()).name == DRIVER
            modes = [file.stat().st_mode & 0o777 for file in short.rglob("*.sock")]
            assert modes == [0o600, 0o600]
        assert [*short.rglob("*.sock")] == []

    asyncio.run(story())
