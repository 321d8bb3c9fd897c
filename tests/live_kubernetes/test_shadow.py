"""Shadow mode decides in every pass, and observes what another scheduler does."""

import json
from pathlib import Path

from poolwise.live.kubernetes.objects import Pod, ResourceClaim
from poolwise.live.kubernetes.shadow_mode import ShadowKubernetes
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
        before = loop.queue.table
        record.observe_pass(Pass(batch, loop.apply_events(batch), loop, before, platform.snapshot(), 0.0, 0.0))

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
