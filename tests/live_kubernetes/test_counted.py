"""Which resources a scheduler counts: what it does not know is looked at when pods start, and said."""

import pytest

from poolwise.live.kubernetes import job_columns
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import Driven, PlayedCluster
from tests.live.kubernetes import objects as make


def driven_with(placement: EmptiestNodes | Pooled) -> Driven:
    """Two nodes of a rack of which one has a device, and three pods that claim one each."""
    made = PlayedCluster(make.device_class("gpu", "gpu.example"), *(make.node(f"n{k}", rack="r0") for k in range(2)))
    made.add(make.devices("gpu.example", "n0", {"name": "a"}, node="n0"))
    for name in ("p0", "p1", "p2"):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name}
        claim = make.claim(name, make.exactly("gpu"))
        made.add({**claim, "metadata": {**claim["metadata"], "ownerReferences": [owner]}})
        made.add(make.pod(name, seconds=None, claims={"g": {"resourceClaimName": name}}))
    return made.open(ListScheduler(backfill=NoBackfill(), placement=placement))


@pytest.mark.parametrize("placement", [EmptiestNodes(), Pooled()], ids=["nodes", "pooled"])
def test_devices_of_a_rack_that_come_later_are_found(
    placement: EmptiestNodes | Pooled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same type as those in nodes, which is all that a placement on nodes counts."""
    told: list[str] = []
    monkeypatch.setattr(job_columns, "say", lambda event, *, resource, then: told.append(resource))
    driven = driven_with(placement)
    assert len(driven.nodes()) == 1 and "gpu" in driven.platform.table.requests and "gpu" not in told
    driven.cluster.add(make.devices("gpu.example", "rack", {"name": "b"}, {"name": "c"}, rack="r0"))
    driven.settle()
    assert len(driven.nodes()) == 3
    assert ("gpu" in told) == isinstance(placement, EmptiestNodes) == ("gpu" not in driven.platform.table.requests)
