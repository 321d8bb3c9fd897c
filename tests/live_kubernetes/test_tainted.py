"""A device that is tainted while in use is not promised to another job for the end of its run."""

from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make


def test_device_tainted_during_its_run_has_negative_free_capacity() -> None:
    device = {"name": "g0", "attributes": {}}
    kube = FakeKubernetes(make.node("n0", cpu="8"), make.device_class("gpu", "gpu.example"))
    kube.add(make.devices("gpu.example", "n0", device, node="n0"))
    for name in ("a", "b"):
        kube.add(make.claim(name, make.exactly("gpu")))
        kube.add(make.pod(name, seconds=600, claims={"g": {"resourceClaimName": name}}))
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    assert driven.nodes() == {"a": "n0"} and driven.platform.snapshot().free.min() == 0
    kube.add(make.devices("gpu.example", "n0", device | {"taints": [{"key": "broken", "effect": "NoSchedule"}]}, node="n0"))
    snapshot = driven.settle().platform.snapshot()
    assert snapshot.free.min() == -1
    (run,) = snapshot.runs()
    after = snapshot.free.copy()
    run.placement.give_to(after)
    assert after[snapshot.machine.owners.index("gpu.example/n0/g0")].max() == 0, "the released device stays unavailable"
    kube.finish("default/a")
    assert driven.settle().nodes() == {"a": "n0"}
