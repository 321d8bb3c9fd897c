"""Tests of the reconciliation of claims with repeated, missing and outdated events."""

import asyncio
import json
from pathlib import Path

import pytest

from poolwise.errors import PoolwiseError
from poolwise.live.kubernetes.client import ApiError
from poolwise_agents.node_agent import work_queue
from poolwise_agents.node_agent.agent import NodeAgent
from tests.helpers.node_agent import (
    DRIVER,
    FILE,
    Hardware,
    MemoryCluster,
    claim_for,
    make_agent,
    publish_all,
    until,
    wait_until_idle,
)

ATTACHED, FAILED = f"{DRIVER}/attached", f"{DRIVER}/attach-failed"


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "INITIAL_DELAY", 0.01)
    monkeypatch.setattr(work_queue, "MAX_DELAY", 0.02)


class World:
    """A cluster, hardware, and agents that have received all claims."""

    def __init__(self, folder: Path, text: str = FILE) -> None:
        self.folder, self.text = folder, text
        self.cluster, self.hardware = MemoryCluster(), Hardware(folder / "hardware")

    async def start_agent(self) -> NodeAgent:
        if not self.cluster.stored:
            await publish_all(self.cluster, self.folder)
        agent = make_agent(self.folder, self.cluster, self.hardware.run, self.text)
        agent.resume()
        for claim in [*self.cluster.claims.values()]:
            self.cluster.put(claim)
        self.cluster.sync()
        return agent

    def cdi(self) -> list[dict[str, object]]:
        files = sorted((self.folder / "cdi").glob("*.json"))
        return [json.loads(file.read_text()) for file in files]


def test_claim_is_attached_reported_prepared_and_released(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        uid = world.cluster.put(claim_for("train", "gpu-0", "gpu-1"))
        await wait_until_idle(agent)
        assert world.hardware.attached == {"gpu-0": uid, "gpu-1": uid}
        assert world.cluster.conditions("train") == {"gpu-0": {ATTACHED: ""}, "gpu-1": {ATTACHED: ""}}
        assert world.cdi() == []
        for _ in range(2):  # the kubelet repeats the request after each of its restarts
            _, names = await agent.prepare("default", "train", uid)
            assert names == [[f"{DRIVER}/claim={uid}-0"], [f"{DRIVER}/claim={uid}-1"]]
        (file,) = world.cdi()
        assert file["kind"] == f"{DRIVER}/claim" and file["cdiVersion"] == "0.6.0"
        assert file["devices"][1] == {  # type: ignore[index]
            "name": f"{uid}-1",
            "containerEdits": {
                "env": ["REMOTE=10.0.0.7:14834", "DEVICE=gpu-a/gpu-1"],
                "mounts": [
                    {"hostPath": "/opt/remote", "containerPath": "/opt/remote", "options": ["ro", "nosuid", "nodev", "bind"]}
                ],
                "deviceNodes": [{"path": "/dev/remote0", "hostPath": "/dev/null", "permissions": "rw"}],
            },
        }
        assert [call for call in world.hardware.calls if "attach" in call] == ["/bin/attach gpu-0", "/bin/attach gpu-1"]
        for _ in range(2):
            await agent.unprepare(uid)
            await wait_until_idle(agent)
            assert (world.hardware.attached, world.cdi(), [*agent.connector.records]) == ({}, [], [])
        world.cluster.delete("train")
        await wait_until_idle(agent)
        assert [call for call in world.hardware.calls if "detach" in call] == ["/bin/detach gpu-1", "/bin/detach gpu-0"]

    asyncio.run(story())


def test_claim_without_conditions_is_attached_when_it_is_prepared(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        uid = world.cluster.put(claim_for("late", "gpu-1", node=None, waits=False))
        await wait_until_idle(agent)
        assert world.hardware.calls == []
        await asyncio.gather(*(agent.prepare("default", "late", uid) for _ in range(3)))
        assert world.hardware.calls == ["/bin/attach gpu-1", "/bin/verify gpu-1"] and len(world.cdi()) == 1
        assert "report late" not in world.cluster.writes

    asyncio.run(story())


@pytest.mark.parametrize("program", ["/bin/attach", "/bin/verify"])
def test_failed_attachment_is_undone_reported_and_not_retried(tmp_path: Path, program: str) -> None:
    async def story() -> None:
        world = World(tmp_path, FILE.replace('"1 s"', '"100 ms"'))
        world.hardware.broken = {program}
        agent = await world.start_agent()
        uid = world.cluster.put(claim_for("train", "gpu-0", "gpu-1"))
        await wait_until_idle(agent)
        ((device, conditions),) = world.cluster.conditions("train").items()
        assert device == "gpu-0" and [*conditions] == [FAILED]
        assert conditions[FAILED] == f"attaching gpu-0 of gpu-a failed: {program}: exit status 1: no such fabric"
        assert world.hardware.attached == {} and world.hardware.calls[-2:] == ["/bin/detach gpu-1", "/bin/detach gpu-0"]
        before = len(world.hardware.calls)
        world.cluster.put(world.cluster.claims["default/train"])
        await wait_until_idle(agent)
        assert len(world.hardware.calls) == before
        world.hardware.broken = set()
        again = claim_for("train", "gpu-0")  # the scheduler deallocates the claim and allocates it again
        again["metadata"]["resourceVersion"] = "90"
        again["status"]["allocation"]["allocationTimestamp"] = "2026-11-22T09:13:00Z"
        world.cluster.put(again)
        await wait_until_idle(agent)
        assert world.hardware.attached == {"gpu-0": uid} and world.cluster.conditions("train") == {"gpu-0": {ATTACHED: ""}}

    asyncio.run(story())


def test_failed_detachment_is_retried_until_it_succeeds(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        uid = world.cluster.put(claim_for("train", "gpu-0"))
        await agent.prepare("default", "train", uid)
        world.hardware.broken = {"/bin/detach"}
        with pytest.raises(PoolwiseError, match="detaching gpu-0 of gpu-a failed"):
            await agent.unprepare(uid)
        assert world.cdi() == [] and [record.state for record in agent.connector.records] == ["detaching"]
        world.cluster.delete("train")
        world.hardware.broken = set()
        await until(lambda: world.hardware.attached == {} and not [*agent.connector.records])
        await agent.queue.stop()

    asyncio.run(story())


def test_attachment_that_cannot_be_undone_is_reported_and_undone_later(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path, FILE.replace('"1 s"', '"100 ms"'))
        world.hardware.broken = {"/bin/verify", "/bin/detach"}
        agent = await world.start_agent()
        world.cluster.put(claim_for("train", "gpu-0"))
        await until(lambda: bool(world.cluster.conditions("train")))
        assert "detaching gpu-0 of gpu-a failed" in world.cluster.conditions("train")["gpu-0"][FAILED]
        assert [*world.hardware.attached] == ["gpu-0"]
        world.hardware.broken = set()
        await until(lambda: world.hardware.attached == {})
        await wait_until_idle(agent)
        assert [record.state for record in agent.connector.records] == ["failed"]

    asyncio.run(story())


def test_deallocated_claim_is_released_unless_a_pod_uses_it(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        waiting = world.cluster.put(claim_for("waiting", "gpu-0"))
        prepared = world.cluster.put(claim_for("prepared", "gpu-1"))
        await agent.prepare("default", "prepared", prepared)
        await wait_until_idle(agent)
        assert world.hardware.attached == {"gpu-0": waiting, "gpu-1": prepared}
        for name in ("waiting", "prepared"):
            claim = world.cluster.claims[f"default/{name}"]
            world.cluster.put({**claim, "status": {}})
        await wait_until_idle(agent)
        assert world.hardware.attached == {"gpu-1": prepared}
        await agent.unprepare(prepared)
        assert world.hardware.attached == {}

    asyncio.run(story())


def test_unsynced_claim_is_kept_after_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        uid = world.cluster.put(claim_for("train", "gpu-0"))
        await wait_until_idle(agent)
        agent = make_agent(tmp_path, world.cluster, world.hardware.run)
        agent.resume()
        await wait_until_idle(agent)
        assert world.hardware.attached == {"gpu-0": uid}
        world.cluster.sync()  # lists `train` before its event arrives
        world.cluster.claims.clear()
        await wait_until_idle(agent)
        world.cluster.sync()
        await wait_until_idle(agent)
        assert world.hardware.attached == {} and not [*agent.connector.records]

    asyncio.run(story())


def test_devices_lost_in_a_reboot_are_attached_again(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        uid = world.cluster.put(claim_for("train", "gpu-0"))
        await agent.prepare("default", "train", uid)
        await wait_until_idle(agent)
        (tmp_path / "hardware" / "gpu-0").unlink()
        for file in (tmp_path / "cdi").iterdir():
            file.unlink()
        (tmp_path / "cdi" / f"{DRIVER}-claim-{uid[:-1]}x.json").write_text("{}")  # without a record
        (tmp_path / "cdi" / "of-another-driver.json").write_text("{}")
        agent = await world.start_agent()
        await wait_until_idle(agent)
        assert world.hardware.attached == {"gpu-0": uid}
        assert {file.name for file in (tmp_path / "cdi").iterdir()} == {f"{DRIVER}-claim-{uid}.json", "of-another-driver.json"}

    asyncio.run(story())


def test_api_server_errors_are_retried(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        statuses = [0, 409, 429, 500, 503]
        world.cluster.errors = [ApiError(status, "Fault", "on purpose") for status in statuses]
        uid = world.cluster.put(claim_for("train", "gpu-0"))
        await until(lambda: "train" in str(world.cluster.writes))
        assert world.cluster.conditions("train") == {"gpu-0": {ATTACHED: ""}} and not world.cluster.errors
        assert world.hardware.calls.count("/bin/attach gpu-0") == 1
        world.cluster.errors = [ApiError(500, "Fault", "on purpose")]
        with pytest.raises(ApiError):
            await agent.prepare("default", "train", uid)
        await agent.prepare("default", "train", uid)
        assert agent.metrics.registry.get_sample_value("poolwise_node_failures_total", {"work": "settle"}) == len(statuses)
        assert agent.metrics.registry.get_sample_value("poolwise_node_claims", {"state": "prepared"}) == 1
        await agent.queue.stop()

    asyncio.run(story())


def test_conditions_are_not_reported_for_another_allocation(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        original = world.hardware.run

        async def reallocate_while_attaching(arguments: list[str], limit_s: float) -> str:
            if tuple(arguments[:2]) == ("/bin/attach", "gpu-0"):
                moved = claim_for("train", "gpu-1")
                moved["metadata"]["resourceVersion"] = "50"
                moved["status"]["allocation"]["allocationTimestamp"] = "2026-11-22T10:00:00Z"
                world.cluster.put(moved)  # while the first allocation is being attached
            return await original(arguments, limit_s)

        agent.connector.run = reallocate_while_attaching  # type: ignore[assignment]
        uid = world.cluster.put(claim_for("train", "gpu-0"))
        await until(lambda: bool(world.cluster.conditions("train")))
        await wait_until_idle(agent)
        assert world.cluster.conditions("train") == {"gpu-1": {ATTACHED: ""}} and world.hardware.attached == {"gpu-1": uid}

    asyncio.run(story())


def test_claims_of_other_nodes_and_drivers_are_ignored(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        agent = await world.start_agent()
        world.cluster.put(claim_for("elsewhere", "gpu-0", node="node-2"))
        world.cluster.put(claim_for("foreign", "gpu-0", driver="nvme.example"))
        unreserved = claim_for("unreserved", "gpu-1")
        del unreserved["status"]["reservedFor"]
        world.cluster.put(unreserved)
        await wait_until_idle(agent)
        assert world.hardware.calls == [] and not [write for write in world.cluster.writes if write.startswith("report")]
        for name in ("elsewhere", "foreign", "unreserved"):
            with pytest.raises(PoolwiseError):
                await agent.prepare("default", name, world.cluster.claims[f"default/{name}"]["metadata"]["uid"])
        assert world.hardware.calls == []

    asyncio.run(story())
