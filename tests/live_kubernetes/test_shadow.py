"""Shadow mode decides in every pass, and observes what another scheduler does."""

import json
from pathlib import Path

import msgspec

from poolwise.live.kubernetes.objects.claim import (
    AllocatedDevice,
    Allocation,
    ClaimStatus,
    Consumer,
    DeviceAllocation,
    ResourceClaim,
)
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.platform import ShadowKubernetes
from poolwise.live.kubernetes.starts import PodStart
from poolwise.live.platform import Pass
from poolwise.live.record import LiveRecord, PassRecorder
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make


def test_shadow_mode_records_its_decisions_and_the_actual_events(tmp_path: Path) -> None:
    """Another scheduler starts one of the pods on a different node."""
    kube = FakeKubernetes(*(make.node(f"n{k}") for k in range(2)), make.device_class("gpu", "gpu.example"))
    kube.add(make.devices("gpu.example", "all", {"name": "g0"}))
    kube.add(make.claim("c", make.exactly("gpu")))
    kube.add(make.pod("a", cpu="16"))
    kube.add(make.pod("b", claims={"g": {"resourceClaimName": "c"}}))
    driven = kube.open(ListScheduler(placement=FirstNodes()), ShadowKubernetes)
    record = PassRecorder(tmp_path / "record.jsonl", {"mode": "shadow"})
    platform, loop = driven.platform, driven.loop

    def happens() -> None:
        received = [kube.events.get() for _ in range(kube.events.qsize())]
        batch = platform.batch(received)
        assert batch is not None
        record.observe_pass(Pass(batch, loop.step(batch), loop, platform.snapshot(), 0.0, 0.0))

    kube.add(make.pod("c"))
    happens()
    assert not kube.started and not kube.stopped and not list(platform.snapshot().runs())
    kube.complete_start(0, [PodStart(kube.get(Pod, "default/a"), "n1")])
    happens()
    kube.finish("default/a")
    happens()
    record.close()
    read = LiveRecord.read(tmp_path / "record.jsonl").jobs
    assert read["default/a"].placement[0].startswith("n1:") and read["default/a"].ended is not None
    assert read["default/c"].decided is not None and read["default/c"].started is None
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert kinds.count("started") == 1 == kinds.count("ended")
    assert kube.objects[ResourceClaim, "default/c"].status.allocation is None and not kube.released


def test_shadow_mode_leaves_starts_of_the_other_scheduler_to_it() -> None:
    """The other scheduler has reserved a claim and then binds the pod, whose run must end with it."""
    kube = FakeKubernetes(make.node("n0"), make.device_class("gpu", "gpu.example"), binds_at_once=False)
    kube.add(make.devices("gpu.example", "all", {"name": "g0"}))
    kube.add(make.claim("c", make.exactly("gpu")))
    pod = kube.add(make.pod("a", claims={"g": {"resourceClaimName": "c"}}))
    mine = Consumer(resource="pods", name="a", uid=pod.metadata.uid)
    device = AllocatedDevice(request="r", driver="gpu.example", pool="all", device="g0")
    status = ClaimStatus(allocation=Allocation(devices=DeviceAllocation(results=[device])), reserved_for=[mine])
    kube.put(msgspec.structs.replace(kube.get(ResourceClaim, "default/c"), status=status))
    driven = kube.open(ListScheduler(placement=FirstNodes()), ShadowKubernetes)
    assert not list(driven.platform.snapshot().runs())
    kube.put(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="n0")))
    assert len(list(driven.settle().platform.snapshot().runs())) == 1
    kube.put(msgspec.structs.replace(kube.get(ResourceClaim, "default/c"), status=ClaimStatus()))
    kube.finish("default/a")
    assert not list(driven.settle().platform.snapshot().runs())
