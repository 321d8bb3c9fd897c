"""In-memory cluster and fake hardware for node agents, with claims and a configuration."""

import asyncio
import copy
import json
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from poolwise.live.kubernetes.client import ApiError
from poolwise.live.kubernetes.informer import Synced, WatchEvent
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise_agents.node_agent.agent import NodeAgent
from poolwise_agents.node_agent.cdi import CdiFolder
from poolwise_agents.node_agent.commands import CommandError
from poolwise_agents.node_agent.config import NodeAgentFile, load_node_agent
from poolwise_agents.node_agent.connector import Connector, Runner
from poolwise_agents.node_agent.records import Records
from poolwise_agents.node_agent.slices import desired_specs, publish_slices
from tests.helpers.waiting import run_other_tasks, wait_until_async

DRIVER = "gpu.fabric.example"
FILE = """
version = 1
driver = "gpu.fabric.example"

[[pool]]
name = "gpu-a"
node = "gpu-a"
reach = "all"
device = [
    { name = "gpu-0", template = "remote", attributes = { address = "10.0.0.7:14833", model = "H200" } },
    { name = "gpu-1", template = "remote", attributes = { address = "10.0.0.7:14834" }, capacity = { memory = "141Gi" } },
]

[[pool]]
name = "lent"
node = "gpu-a"
reach = "all"
device = [{ name = "gpu-2", template = "plain", attributes = { address = "10.0.0.7:14835" } }]

[template.plain]
environment = { REMOTE = "{attribute.address}" }

[template.remote]
attach = ["/bin/attach", "{device}", "--to={attribute.address}", "{claim.uid}"]
verify = ["/bin/verify", "{device}"]
detach = ["/bin/detach", "{device}"]
time_limit = "1 s"
environment = { REMOTE = "{attribute.address}", DEVICE = "{pool}/{device}" }
mounts = [{ host = "/opt/remote", container = "/opt/remote" }]
device_nodes = [{ host = "/dev/null", container = "/dev/remote0" }]
"""
Content = dict[str, Any]


def node_agent_file(folder: Path, text: str = FILE) -> NodeAgentFile:
    """Write and load a configuration."""
    path = folder / "node-agent.toml"
    path.write_text(text)
    return load_node_agent(path)


def claim_for(
    name: str, *devices: str, node: str | None = "node-1", pool: str = "gpu-a", waits: bool = True, **fields: Any
) -> Content:
    """Return a claim with allocated devices, reserved for a pod and pinned to a node."""
    conditions = {"bindingConditions": [f"{DRIVER}/attached"], "bindingFailureConditions": [f"{DRIVER}/attach-failed"]}
    common = {"request": "gpu", "driver": DRIVER, "pool": pool, **(conditions if waits else {}), **fields}
    results = [common | {"device": device} for device in devices]
    allocation: Content = {"devices": {"results": results}, "allocationTimestamp": "2026-11-22T09:12:47Z"}
    if node is not None:
        fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": fields}]}
    uid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "1"},
        "status": {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": "pod", "uid": uid}]},
    }


def decoded(content: Content) -> ResourceClaim:
    """Return a claim as the agent reads it."""
    return msgspec.json.decode(json.dumps(content), type=ResourceClaim)


class MemoryCluster:
    """Claims and slices in memory, with the relevant checks of an API server; tests can inject errors."""

    def __init__(self) -> None:
        self.claims: dict[str, Content] = {}
        self.stored: dict[str, Content] = {}
        self.writes: list[str] = []
        self.errors: list[ApiError] = []
        self.notify: Callable[[WatchEvent[ResourceClaim] | Synced], None] = lambda seen: None

    def put(self, content: Content) -> str:
        """Create or change a claim, send its event, and return its uid."""
        content = copy.deepcopy(content)
        meta = content["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        self.claims[f"{meta['namespace']}/{meta['name']}"] = content
        self.notify(WatchEvent(decoded(content)))
        return str(meta["uid"])

    def delete(self, name: str) -> None:
        """Delete a claim and send its event."""
        self.notify(WatchEvent(decoded(self.claims.pop(f"default/{name}")), deleted=True))

    def sync(self) -> None:
        """Send the event that all claims have been listed."""
        self.notify(Synced(ResourceClaim, frozenset(self.claims)))

    def conditions(self, name: str) -> dict[str, dict[str, str]]:
        """Return device -> true condition -> message."""
        devices = self.claims[f"default/{name}"]["status"].get("devices", [])
        return {d["device"]: {c["type"]: c["message"] for c in d["conditions"] if c["status"] == "True"} for d in devices}

    async def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        self._raise_injected_error()
        stored = self.claims.get(f"{namespace}/{name}")
        return None if stored is None else decoded(stored)

    async def node_uid(self, node: str) -> str:
        self._raise_injected_error()
        return f"uid-of-{node}"

    async def slices(self, driver: str) -> list[ResourceSlice]:
        self._raise_injected_error()
        slices = [item for item in self.stored.values() if item["spec"]["driver"] == driver]
        return [msgspec.json.decode(json.dumps(item), type=ResourceSlice) for item in slices]

    async def apply_slice(self, content: Content) -> None:
        self._raise_injected_error()
        assert len(content["spec"]["devices"]) <= 128
        self.writes.append(content["metadata"]["name"])
        self.stored[content["metadata"]["name"]] = json.loads(json.dumps(content))

    async def delete_slice(self, name: str) -> None:
        self._raise_injected_error()
        self.writes.append(name)
        self.stored.pop(name, None)

    async def report(self, claim: ResourceClaim, devices: list[Content]) -> None:
        self._raise_injected_error()
        content = self.claims.get(claim.metadata.key)
        if content is None:
            raise ApiError(404, "NotFound", "no such claim")
        meta = content["metadata"]
        if (meta["uid"], meta["resourceVersion"]) != (claim.metadata.uid, claim.metadata.resource_version):
            raise ApiError(409, "Conflict", "the claim has changed")
        allocated = {
            (device["driver"], device["pool"], device["device"])
            for device in content["status"]["allocation"]["devices"]["results"]
        }
        if any((device["driver"], device["pool"], device["device"]) not in allocated for device in devices):
            raise ApiError(422, "Invalid", "must be an allocated device")
        content["status"]["devices"] = json.loads(json.dumps(devices))
        self.writes.append(f"report {claim.metadata.name}")
        self.put(content)

    def _raise_injected_error(self) -> None:
        if self.errors:
            raise self.errors.pop(0)


class Hardware:
    """Runs commands on a folder that represents the hardware: one file per attached device, with the claim's uid.

    Attributes
    ----------
    calls : programs and devices, in order
    broken : programs that fail
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.calls: list[str] = []
        self.broken: set[str] = set()

    async def run(self, arguments: Sequence[str], limit_s: float) -> str:
        program, device, *more = arguments
        self.calls.append(f"{program} {device}")
        await asyncio.sleep(0)
        if program in self.broken:
            raise CommandError(f"{program}: exit status 1: no such fabric")
        file = self.folder / device
        if program == "/bin/attach":
            file.write_text(more[-1])
        elif program == "/bin/detach":
            file.unlink(missing_ok=True)
        elif not file.exists():
            raise CommandError(f"{program}: exit status 1: not attached")
        return ""

    @property
    def attached(self) -> dict[str, str]:
        """Device -> uid of its claim."""
        return {file.name: file.read_text() for file in self.folder.iterdir()}


def unwrapped(name: str, part: Any) -> Any:
    """Return a part unchanged."""
    return part


def make_agent(
    folder: Path,
    cluster: Any,
    run: Runner,
    text: str = FILE,
    node: str = "node-1",
    wrap: Callable[[str, Any], Any] = unwrapped,
) -> NodeAgent:
    """Return an agent that gets the claims of a cluster; call this in a running event loop."""
    file = node_agent_file(folder, text)
    records, cdi = wrap("records", Records(folder / "state")), wrap("cdi", CdiFolder(folder / "cdi", file.driver))
    agent = NodeAgent(file, node, wrap("cluster", cluster), Connector(records, cdi, run))
    cluster.notify = agent.handle_event
    return agent


async def publish_all(cluster: Any, folder: Path, text: str = FILE) -> None:
    """Publish the devices of the other node."""
    file = node_agent_file(folder, text)
    await publish_slices(cluster, "gpu-a", file.driver, desired_specs(file, "gpu-a"))


async def wait_until_idle(agent: NodeAgent) -> None:
    """Wait until the queue is empty."""
    await run_other_tasks()
    await wait_until_async(lambda: not agent.queue._tasks, "the queue of the agent is empty")


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    await wait_until_async(condition, "the condition of the test")
