"""A device that may not be used again is not promised to anybody for when its run ends."""

from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import PlayedCluster
from tests.live.kubernetes import objects as make


def test_a_device_that_is_tainted_under_its_run_is_less_than_nothing() -> None:
    device = {"name": "g0", "attributes": {}}
    made = PlayedCluster(make.node("n0", cpu="8"), make.device_class("gpu", "gpu.example"))
    made.add(make.devices("gpu.example", "n0", device, node="n0"))
    for name in ("a", "b"):
        made.add(make.claim(name, make.exactly("gpu")))
        made.add(make.pod(name, seconds=600, claims={"g": {"resourceClaimName": name}}))
    driven = made.open(ListScheduler(placement=FirstNodes()))
    assert driven.nodes() == {"a": "n0"} and driven.platform.snapshot().free.min() == 0
    made.add(make.devices("gpu.example", "n0", device | {"taints": [{"key": "broken", "effect": "NoSchedule"}]}, node="n0"))
    snapshot = driven.settle().platform.snapshot()
    assert snapshot.free.min() == -1
    (run,) = snapshot.runs()
    after = snapshot.free.copy()
    run.placement.give_to(after)
    assert after[snapshot.machine.owners.index("gpu.example/n0/g0")].max() == 0, "the device comes free and is of no use"
    made.finish("default/a")
    assert driven.settle().nodes() == {"a": "n0"}
