"""The network-aware policy places pods by the link traffic that node agents measure."""

from typing import Any

import pytest

from poolwise.cli.live import named_scheduler
from poolwise.live.kubernetes.link_traffic import LinkTraffic
from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise_agents.node_agent.links import link_specs
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make


def link_slice(node: str, used: float) -> dict[str, Any]:
    """The slice by which a node agent publishes its link."""
    (spec,) = next(iter(link_specs("gpu.example", node, {"uplink": LinkTraffic(used, 1000.0)}).values()))
    return {"kind": "ResourceSlice", "metadata": {"name": f"links-{node}"}, "spec": spec}


def cluster(*used: float) -> FakeKubernetes:
    """Two nodes whose links carry the given traffic (MB/s of 1,000), and GPUs of the fabric."""
    kube = FakeKubernetes(
        *(make.node(f"n{k}") for k in range(2)), *(link_slice(f"n{k}", amount) for k, amount in enumerate(used))
    )
    kube.add(make.device_class("gpu", "gpu.example"))
    kube.add(make.devices("gpu.example", "all", *({"name": f"g{k}"} for k in range(4))))
    return kube


def submit(driven: DrivenPlatform, name: str) -> str | None:
    """Submit a pod that a loaded link slows down; return its node."""
    owner = [{"kind": "Pod", "name": name, "uid": name}]
    claim = make.claim(f"of-{name}", make.exactly("gpu"))
    driven.cluster.add({**claim, "metadata": {**claim["metadata"], "ownerReferences": owner}})
    pod = make.pod(name, claims={"g": {"resourceClaimName": f"of-{name}"}})
    pod["metadata"]["annotations"]["poolwise/kind"] = KIND
    driven.cluster.add(pod)
    return driven.settle().nodes().get(name)


KIND = "srad"


@pytest.mark.parametrize(("used", "node"), [((), "n0"), ((900.0, 0.0), "n1"), ((0.0, 900.0), "n0")])
def test_pod_is_placed_where_the_link_is_idle(used: tuple[float, ...], node: str) -> None:
    assert submit(cluster(*used).open(named_scheduler("catalog:drmaestro-network-aware")), "p") == node


def test_changed_load_counts_without_rebuilding_the_machine() -> None:
    driven = cluster(0.0, 0.0).open(named_scheduler("catalog:drmaestro-network-aware"))
    assert submit(driven, "a") == "n0"
    machine = driven.platform.snapshot().machine
    driven.cluster.add(link_slice("n0", 950.0))
    assert submit(driven, "b") == "n1"
    assert driven.platform.snapshot().machine is machine
    driven.cluster.remove(ResourceSlice, "links-n0")
    driven.cluster.remove(ResourceSlice, "links-n1")
    driven.settle()
    assert driven.platform.snapshot().traffic is None and driven.platform.snapshot().machine.fabric is None
