"""Node agents on a real API server with the shipped RBAC: from a published device to its CDI file and back."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.kubelet import Kubelet
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.control_plane import FIRST_FIT, ControlPlane, control_plane, scheduling

ROOT = Path(__file__).parents[3]
MANIFEST = ROOT / "deploy" / "kubernetes" / "node-agent.yaml"
DRIVER = "gpu.fabric.example"
FILE = """
version = 1
driver = "gpu.fabric.example"

[[pool]]
name = "gpu-a"
node = "gpu-a"
reach = "all"
device = [
    { name = "gpu-0", template = "remote", attributes = { address = "10.0.0.7:14833" }, capacity = { memory = "1024Mi" } },
    { name = "gpu-1", template = "dead", attributes = { model = "broken" } },
]

[template.remote]
attach = ["/usr/bin/touch", "HARDWARE/{device}"]
verify = ["/usr/bin/test", "-e", "HARDWARE/{device}"]
detach = ["/usr/bin/rm", "-f", "HARDWARE/{device}"]
environment = { REMOTE = "{attribute.address}" }

[template.dead]
attach = ["/usr/bin/false"]

[links]
every = "1 s"
link = [{ name = "uplink", interface = "lo", bandwidth = "10 GB/s" }]

[folders]
state = "HOME/state"
cdi = "HOME/cdi"
plugins = "HOME/plugins"
registry = "HOME/registry"
"""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Use a short folder, because socket paths are limited in length."""
    folder = Path("/tmp") / f"poolwise-agents-{os.getpid()}"
    folder.mkdir()
    with control_plane(folder / "kube", KUBE_APISERVER_FLAGS="--allow-privileged") as started:
        started.kubectl("apply", "-f", str(MANIFEST))
        started.apply([make.device_class("fabric-gpu", DRIVER)])
        started.apply([make.node("gpu-a", unschedulable=True), make.node("node-1")])
        yield started
    shutil.rmtree(folder)


class Agent:
    """A node's agent as a process, with a token that is bound to the node."""

    def __init__(self, plane: ControlPlane, node: str, text: str = FILE) -> None:
        self.plane, self.node, self.home = plane, node, plane.folder.parent / node
        self.hardware = plane.folder.parent / "hardware"
        self.process: subprocess.Popen[bytes] | None = None
        for folder in (self.home, self.hardware):
            folder.mkdir(exist_ok=True)
        self.file, self.access = self.home / "agent.toml", self.home / "kubeconfig"
        self.file.write_text(text.replace("HOME", str(self.home)).replace("HARDWARE", str(self.hardware)))
        bound = ("--bound-object-kind", "Node", "--bound-object-name", node)
        token = plane.kubectl("create", "token", "poolwise-node-agent", "-n", "poolwise", *bound).strip()
        config = yaml.safe_load(plane.kubeconfig().read_text())
        config["users"][0]["user"] = {"token": token}
        self.access.write_text(yaml.safe_dump(config))

    def begin(self) -> None:
        command = [sys.executable, "-m", "poolwise", "agent", "devices", str(self.file), "--node", self.node, "--port", "0"]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, "--kubeconfig", str(self.access)], stderr=log)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(10)

    @property
    def log(self) -> str:
        return (self.home / "log").read_text() if (self.home / "log").exists() else ""

    @property
    def lives(self) -> int:
        """Number of times that it began to serve."""
        return self.log.count('"agent_started"')


@contextmanager
def agents(plane: ControlPlane, text: str = FILE, slices: int = 3) -> Iterator[tuple[Agent, Agent]]:
    both = Agent(plane, "gpu-a", text), Agent(plane, "node-1", text)
    try:
        lives = [agent.lives for agent in both]
        for agent in both:
            agent.begin()
        plane.wait(lambda: all(a.lives > n for a, n in zip(both, lives, strict=True)), 60, "both agents serve")
        plane.wait(lambda: len(plane.get("resourceslices")) == slices, 60, f"slices: {both[0].log}{both[1].log}")
        yield both
    finally:
        left = [agent for agent in both if agent.process is not None and agent.process.poll() is None]
        statuses = [agent.end() for agent in left]
        assert not any(statuses), [agent.log for agent in left]


def claim(plane: ControlPlane, name: str) -> dict[str, Any]:
    (matching,) = [item for item in plane.get("resourceclaims") if item["metadata"]["name"] == name]
    return matching


def holding(plane: ControlPlane, name: str) -> list[str]:
    return [c["type"] for d in claim(plane, name).get("status", {}).get("devices", []) for c in d["conditions"]]


def asking(name: str, selector: str) -> list[dict[str, Any]]:
    chosen = [{"cel": {"expression": f'device.attributes["{DRIVER}"].{selector}'}}]
    pod = make.pod(name, seconds=None, claims={"device": {"resourceClaimName": name}})
    return [make.claim(name, make.exactly("fabric-gpu", selectors=chosen)), pod]


def test_device_is_published_attached_prepared_and_released(plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "first-fit.toml").write_text(FIRST_FIT)
    with agents(plane) as (_, agent), scheduling(plane, str(tmp_path / "first-fit.toml")):
        plane.apply(asking("train", 'template == "remote"'))
        plane.wait(lambda: plane.phases().get("train") == "Running", 120, f"running: {agent.log}")
        assert holding(plane, "train") == [f"{DRIVER}/attached"]
        assert [file.name for file in agent.hardware.iterdir()] == ["gpu-0"]
        uid = claim(plane, "train")["metadata"]["uid"]
        assert agent.end(signal.SIGKILL) == -9
        agent.begin()  # it finds the attached device in its records
        plane.wait(lambda: agent.lives == 2, 60, f"the restarted agent: {agent.log}")

        async def kubelet(prepare: bool) -> Any:
            played = Kubelet(agent.home / "registry")
            await played.register()
            return await (played.prepare(("train", uid)) if prepare else played.unprepare(("train", uid)))

        for _ in range(2):
            answer = asyncio.run(kubelet(True)).claims[uid]
            assert answer.error == "" and [*answer.devices[0].cdi_device_ids] == [f"{DRIVER}/claim={uid}-0"]
        (file,) = (agent.home / "cdi").iterdir()
        assert json.loads(file.read_text())["devices"][0]["containerEdits"]["env"] == ["REMOTE=10.0.0.7:14833"]
        plane.kubectl("delete", "pod", "train", "--grace-period=0", "--force")
        for _ in range(2):
            assert asyncio.run(kubelet(False)).claims[uid].error == ""
        assert not [*agent.hardware.iterdir()] and not [*(agent.home / "cdi").iterdir()]
        generations = {item["metadata"]["name"]: item["spec"]["pool"]["generation"] for item in plane.get("resourceslices")}
        assert {*generations.values()} == {1}, "unchanged slices are not rewritten"


def test_failed_attachment_is_reported_and_the_pod_is_not_bound(plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "first-fit.toml").write_text(FIRST_FIT)
    with agents(plane) as (_, agent), scheduling(plane, str(tmp_path / "first-fit.toml")):
        plane.apply(asking("doomed", 'template == "dead"'))
        plane.wait(lambda: '"claim_reported"' in agent.log and "attach-failed" in agent.log, 120, f"reported: {agent.log}")
        assert "attaching gpu-1 of gpu-a failed: /usr/bin/false: exit status 1" in agent.log
        assert plane.phases() == {"doomed": "Pending"}
        plane.kubectl("delete", "pod", "doomed", "--grace-period=0", "--force")
        plane.kubectl("delete", "resourceclaim", "doomed", "--wait=false")


def test_agent_cannot_write_for_another_node(plane: ControlPlane) -> None:
    """It can write neither slices of another node nor conditions of a claim that is allocated there."""
    with agents(plane) as (publisher, agent):
        theirs = next(item["metadata"]["name"] for item in plane.get("resourceslices") if item["spec"]["driver"] == DRIVER)
        for words, user in (("own node only", agent), ("deleted", publisher)):
            command = ["delete", "resourceslice", theirs]
            kubectl = [str(Path(sys.executable).parent / "kubectl"), "--kubeconfig", str(user.access)]
            done = subprocess.run([*kubectl, *command], capture_output=True, text=True, check=False)
            assert words in done.stdout + done.stderr
        reads = subprocess.run([*kubectl, "get", "secrets", "-A"], capture_output=True, text=True, check=False)
        assert "forbidden" in reads.stderr


def lupine_client(folder: Path) -> dict[str, str]:
    """Install the LUPINE client from the registry into its own folder; return the environment that finds it."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), "lupine==2.1.0"]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("the registry does not serve lupine 2.1.0, the client of LUPINE")
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


@contextmanager
def bundles() -> Iterator[tuple[int, list[str]]]:
    """A server without client libraries; yields its port and the received requests."""
    requests: list[str] = []

    class Refuse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(f"{self.path} {self.headers['Accept']}")
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refuse)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, requests
    finally:
        server.shutdown()
        server.server_close()


def test_shipped_template_connects_the_lupine_client_to_its_server(plane: ControlPlane, tmp_path: Path) -> None:
    """From the example file to the CDI file; its environment leads the real client to the server, which has no GPU here."""
    client = lupine_client(tmp_path / "client")
    (tmp_path / "first-fit.toml").write_text(FIRST_FIT)
    reach = tmp_path / "nc"  # netcat may not be installed
    reach.write_text(
        f"#!{sys.executable}\nimport socket, sys\nsocket.create_connection((sys.argv[-2], int(sys.argv[-1])), 3)\n"
    )
    reach.chmod(0o755)
    shipped = MANIFEST.with_suffix(".toml").read_text()
    with bundles() as (port, requests):
        text = shipped.replace('host = "10.0.0.7", port = 14833', f'host = "127.0.0.1", port = {port}')
        text = text.replace("/usr/bin/nc", shutil.which("nc") or str(reach)).replace('interface = "eth0"', 'interface = "lo"')
        with agents(plane, text + FILE[FILE.index("\n[folders]") :], slices=4) as (_, agent):
            with scheduling(plane, str(tmp_path / "first-fit.toml")):
                plane.apply(asking("remote", 'model == "H200"'))
                plane.wait(lambda: plane.phases().get("remote") == "Running", 120, f"running: {agent.log}")
            uid = claim(plane, "remote")["metadata"]["uid"]

            async def kubelet(prepare: bool) -> Any:
                played = Kubelet(agent.home / "registry")
                await played.register()
                return await (played.prepare(("remote", uid)) if prepare else played.unprepare(("remote", uid)))

            assert asyncio.run(kubelet(True)).claims[uid].error == ""
            (file,) = (agent.home / "cdi").iterdir()
            variables = dict(e.split("=", 1) for e in json.loads(file.read_text())["devices"][0]["containerEdits"]["env"])
            command = [sys.executable, "-c", "import lupine; print(lupine.servers()); lupine.load_native(missing_ok=False)"]
            done = subprocess.run(command, env=client | variables, capture_output=True, text=True, check=False)
            assert f"127.0.0.1:{port}" in done.stdout and "404" in done.stderr
            assert len(requests) == 1 and "application/vnd.lupine.client-bundle" in requests[0]
            plane.kubectl("delete", "pod", "remote", "--grace-period=0", "--force")
            assert asyncio.run(kubelet(False)).claims[uid].error == ""
    print(
        f"\nlupine 2.1.0 requested {requests[0]} from its server; its library was not loaded: only a server with a GPU has it"
    )


_GPU = shutil.which("nvidia-smi") is not None and bool(os.environ.get("POOLWISE_LUPINE_SERVER"))


@pytest.mark.skipif(not _GPU, reason="using a remote GPU requires a GPU and a LUPINE server ($POOLWISE_LUPINE_SERVER)")
def test_cuda_program_uses_a_remote_gpu_through_lupine() -> None:
    """Copies through the remote driver return the same bytes; the times of remote and local copies are printed."""
    program = (
        "import ctypes, os, time\n"
        "if os.environ.get('LUPINE_SERVER'):\n    import lupine; lupine.load_native(missing_ok=False)\n"
        "cuda = ctypes.CDLL(os.environ.get('CUDA', 'libcuda.so.1'))\n"
        "def call(name, *given):\n    status = getattr(cuda, name)(*given); assert status == 0, (name, status)\n"
        "n = 1 << 26; a = ctypes.create_string_buffer(os.urandom(n), n); b = ctypes.create_string_buffer(n)\n"
        "device, context, where = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()\n"
        "call('cuInit', 0); call('cuDeviceGet', ctypes.byref(device), 0)\n"
        "call('cuCtxCreate_v2', ctypes.byref(context), 0, device)\n"
        "call('cuMemAlloc_v2', ctypes.byref(where), ctypes.c_size_t(n)); began = time.monotonic()\n"
        "call('cuMemcpyHtoD_v2', where, a, ctypes.c_size_t(n)); call('cuMemcpyDtoH_v2', b, where, ctypes.c_size_t(n))\n"
        "took = time.monotonic() - began; assert a.raw == b.raw; print(took)\n"
    )
    plain = {name: value for name, value in os.environ.items() if name != "LUPINE_SERVER"}
    remote = {**plain, "LUPINE_SERVER": os.environ["POOLWISE_LUPINE_SERVER"]}
    seconds = [
        float(subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout)
        for env in (plain, remote)
    ]
    print(f"64 MiB there and back: {seconds[0]:.3f} s local, {seconds[1]:.3f} s by LUPINE")
