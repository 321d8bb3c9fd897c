"""Resources that a scheduler does not model are checked when pods start, and logged."""

import pytest

from poolwise.live.kubernetes import job_columns
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make


def driven_with(placement: EmptiestNodes | Pooled) -> DrivenPlatform:
    """Two nodes of a rack, one of them with a device, and three pods that claim one device each."""
    kube = FakeKubernetes(make.device_class("gpu", "gpu.example"), *(make.node(f"n{k}", rack="r0") for k in range(2)))
    kube.add(make.devices("gpu.example", "n0", {"name": "a"}, node="n0"))
    for name in ("p0", "p1", "p2"):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name}
        claim = make.claim(name, make.exactly("gpu"))
        kube.add({**claim, "metadata": {**claim["metadata"], "ownerReferences": [owner]}})
        kube.add(make.pod(name, seconds=None, claims={"g": {"resourceClaimName": name}}))
    return kube.open(ListScheduler(backfill=NoBackfill(), placement=placement))


@pytest.mark.parametrize("placement", [EmptiestNodes(), Pooled()], ids=["nodes", "pooled"])
def test_devices_added_to_a_rack_later_are_used(placement: EmptiestNodes | Pooled, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the type of the local devices; placements on nodes model only local ones."""
    logged: list[str] = []
    monkeypatch.setattr(job_columns, "log_event", lambda event, *, resource, then: logged.append(resource))
    driven = driven_with(placement)
    assert len(driven.nodes()) == 1 and "gpu" in driven.platform.table.requests and "gpu" not in logged
    driven.cluster.add(make.devices("gpu.example", "rack", {"name": "b"}, {"name": "c"}, rack="r0"))
    driven.settle()
    assert len(driven.nodes()) == 3
    assert ("gpu" in logged) == isinstance(placement, EmptiestNodes) == ("gpu" not in driven.platform.table.requests)
