"""A shadow decides again and again, and sees what really happens."""

import json
from pathlib import Path

from poolwise.live.kubernetes.objects import Pod, ResourceClaim
from poolwise.live.kubernetes.shadow_mode import ShadowKubernetes
from poolwise.live.kubernetes.starts import PodStart
from poolwise.live.platform import Pass
from poolwise.live.record import LiveRecord, RecordedPasses
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import PlayedCluster
from tests.live.kubernetes import objects as make


def test_a_shadow_records_what_it_would_do_and_what_happens(tmp_path: Path) -> None:
    """Somebody else starts one of its pods, and elsewhere."""
    made = PlayedCluster(*(make.node(f"n{k}") for k in range(2)), make.device_class("gpu", "gpu.example"))
    made.add(make.devices("gpu.example", "all", {"name": "g0"}))
    made.add(make.claim("c", make.exactly("gpu")))
    made.add(make.pod("a", cpu="16"))
    made.add(make.pod("b", claims={"g": {"resourceClaimName": "c"}}))
    driven = made.open(ListScheduler(placement=FirstNodes()), ShadowKubernetes)
    record = RecordedPasses(tmp_path / "record.jsonl", {"mode": "shadow"})
    platform, loop = driven.platform, driven.loop

    def happens() -> None:
        told = [made.told.get() for _ in range(made.told.qsize())]
        batch = platform.batch(told)
        assert batch is not None
        before = loop.queue.table
        record.observe_pass(Pass(batch, loop.apply_events(batch), loop, before, platform.snapshot(), 0.0, 0.0))

    made.add(make.pod("c"))
    happens()
    assert not made.started and not made.stopped and not list(platform.snapshot().runs())
    made.come_true(0, [PodStart(made.get(Pod, "default/a"), "n1")])
    happens()
    made.finish("default/a")
    happens()
    record.close()
    read = LiveRecord.read(tmp_path / "record.jsonl").jobs
    assert read["default/a"].placement[0].startswith("n1:") and read["default/a"].ended is not None
    assert read["default/c"].decided is not None and read["default/c"].started is None
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    assert kinds.count("started") == 1 == kinds.count("ended")
    assert made.objects[ResourceClaim, "default/c"].status.allocation is None and not made.given_back
