"""What goes over links, as node agents measure it, decides where the network-aware policy puts pods."""

from typing import Any

import pytest

from poolwise.cli.live import named_scheduler
from poolwise.live.kubernetes.link_traffic import Traffic
from poolwise.live.kubernetes.objects import ResourceSlice
from poolwise.live.node_agent.links import link_specs
from tests.helpers.played_cluster import Driven, PlayedCluster
from tests.live.kubernetes import objects as make


def told(node: str, used: float) -> dict[str, Any]:
    """The slice by which a node agent tells of its link."""
    (spec,) = next(iter(link_specs("gpu.example", node, {"uplink": Traffic(used, 1000.0)}).values()))
    return {"kind": "ResourceSlice", "metadata": {"name": f"links-{node}"}, "spec": spec}


def cluster(*used: float) -> PlayedCluster:
    """Two nodes, links of which so much (MB/s of 1,000) is used, and GPUs of the fabric."""
    made = PlayedCluster(*(make.node(f"n{k}") for k in range(2)), *(told(f"n{k}", amount) for k, amount in enumerate(used)))
    made.add(make.device_class("gpu", "gpu.example"))
    made.add(make.devices("gpu.example", "all", *({"name": f"g{k}"} for k in range(4))))
    return made


def submit(driven: Driven, name: str) -> str | None:
    """Submit a pod that suffers from a loaded link; returns its node."""
    owner = [{"kind": "Pod", "name": name, "uid": name}]
    claim = make.claim(f"of-{name}", make.exactly("gpu"))
    driven.cluster.add({**claim, "metadata": {**claim["metadata"], "ownerReferences": owner}})
    pod = make.pod(name, claims={"g": {"resourceClaimName": f"of-{name}"}})
    pod["metadata"]["annotations"]["poolwise/kind"] = KIND
    driven.cluster.add(pod)
    return driven.settle().nodes().get(name)


KIND = "srad"


@pytest.mark.parametrize(("used", "node"), [((), "n0"), ((900.0, 0.0), "n1"), ((0.0, 900.0), "n0")])
def test_a_pod_goes_where_the_link_is_idle(used: tuple[float, ...], node: str) -> None:
    assert submit(cluster(*used).open(named_scheduler("catalog:drmaestro-network-aware")), "p") == node


def test_a_load_that_changes_counts_from_then_on_and_the_machine_stays() -> None:
    driven = cluster(0.0, 0.0).open(named_scheduler("catalog:drmaestro-network-aware"))
    assert submit(driven, "a") == "n0"
    machine = driven.platform.snapshot().machine
    driven.cluster.add(told("n0", 950.0))
    assert submit(driven, "b") == "n1"
    assert driven.platform.snapshot().machine is machine
    driven.cluster.remove(ResourceSlice, "links-n0")
    driven.cluster.remove(ResourceSlice, "links-n1")
    driven.settle()
    assert driven.platform.snapshot().traffic is None and driven.platform.snapshot().machine.fabric is None
