"""Tests of published slices: generations and counts are consistent after every write, and unchanged slices are not written."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from poolwise.errors import PoolwiseError
from poolwise.live.kubernetes.client import ApiError
from poolwise_agents.node_agent.required_attachments import published_devices
from poolwise_agents.node_agent.slices import desired_specs, publish_slices, slice_name
from tests.helpers.node_agent import DRIVER, FILE, MemoryCluster, node_agent_file

MANY = "device = [\n" + "".join(f'{{ name = "d{k}" }},\n' for k in range(300)) + "]\n"
LARGE = f'version = 1\ndriver = "{DRIVER}"\n[[pool]]\nname = "large"\nnode = "gpu-a"\n{MANY}'


def publish(cluster: MemoryCluster, folder: Path, text: str, node: str = "gpu-a") -> int:
    file = node_agent_file(folder, text)
    cluster.writes.clear()
    return asyncio.run(publish_slices(cluster, node, file.driver, desired_specs(file, node)))


def pools(cluster: MemoryCluster) -> dict[str, list[tuple[int, int, int]]]:
    by_pool: dict[str, list[tuple[int, int, int]]] = {}
    for resource_slice in cluster.stored.values():
        pool = resource_slice["spec"]["pool"]
        by_pool.setdefault(pool["name"], []).append(
            (pool["generation"], pool["resourceSliceCount"], len(resource_slice["spec"]["devices"]))
        )
    return {name: sorted(many) for name, many in by_pool.items()}


def test_slices_are_written_once_and_after_changes(tmp_path: Path) -> None:
    cluster = MemoryCluster()
    assert publish(cluster, tmp_path, FILE) == 2 and publish(cluster, tmp_path, FILE) == 0
    assert pools(cluster) == {"gpu-a": [(1, 1, 2)], "lent": [(1, 1, 1)]}
    assert publish(cluster, tmp_path, FILE.replace("H200", "B200")) == 1
    assert pools(cluster) == {"gpu-a": [(2, 1, 2)], "lent": [(1, 1, 1)]}
    assert publish(cluster, tmp_path, FILE.replace('name = "lent"', 'name = "given"')) == 3
    assert set(pools(cluster)) == {"gpu-a", "given"} and pools(cluster)["given"] == [(1, 1, 1)]


def test_equivalent_values_of_the_server_are_unchanged(tmp_path: Path) -> None:
    cluster = MemoryCluster()
    text = FILE.replace('"141Gi"', '"1024Mi"')
    publish(cluster, tmp_path, text)
    stored = next(
        resource_slice["spec"]
        for resource_slice in cluster.stored.values()
        if resource_slice["spec"]["pool"]["name"] == "gpu-a"
    )
    stored["devices"][1]["capacity"]["memory"]["value"] = "1Gi"
    assert publish(cluster, tmp_path, text) == 0
    stored["devices"][1]["capacity"]["memory"]["value"] = "2Gi"  # a manual change
    assert publish(cluster, tmp_path, text) == 1


def test_many_devices_fill_several_slices_of_one_generation(tmp_path: Path) -> None:
    cluster = MemoryCluster()
    assert publish(cluster, tmp_path, LARGE) == 3
    assert pools(cluster)["large"] == [(1, 3, 44), (1, 3, 128), (1, 3, 128)]
    fewer = LARGE.replace('{ name = "d299" },\n', "")
    assert publish(cluster, tmp_path, fewer) == 3 and pools(cluster)["large"] == [(2, 3, 43), (2, 3, 128), (2, 3, 128)]
    assert publish(cluster, tmp_path, LARGE[: LARGE.index('{ name = "d100"')] + "]\n") == 3
    assert pools(cluster)["large"] == [(3, 1, 100)]


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_interrupted_update_is_completed_later(tmp_path: Path, writes: int) -> None:
    """Readers can detect a partial update: the newest generation counts, and its slice count shows whether it is complete."""
    cluster = MemoryCluster()
    publish(cluster, tmp_path, LARGE)
    original, left = cluster.apply_slice, [writes]

    async def apply(content: dict[str, Any]) -> None:
        if not left[0]:
            raise ApiError(0, "Killed", "on purpose")
        left[0] -= 1
        await original(content)

    cluster.apply_slice = apply  # type: ignore[method-assign]
    changed = LARGE.replace('name = "d0"', 'name = "first"').replace('name = "d299"', 'name = "last"')
    with pytest.raises(ApiError):
        publish(cluster, tmp_path, changed)
    slices = asyncio.run(cluster.slices(DRIVER))
    newest = [
        resource_slice
        for resource_slice in slices
        if resource_slice.spec.pool.generation == max(s.spec.pool.generation for s in slices)
    ]
    assert (len(newest) == newest[0].spec.pool.resource_slice_count) == (writes == 0)
    left[0] = 10
    publish(cluster, tmp_path, changed)
    generations = {resource_slice["spec"]["pool"]["generation"] for resource_slice in cluster.stored.values()}
    names = {name for _, name in published_devices(asyncio.run(cluster.slices(DRIVER)), DRIVER)}
    assert len(generations) == 1 and len(names) == 300 and {"first", "last"} < names


def test_nodes_publish_only_their_own_pools(tmp_path: Path) -> None:
    cluster = MemoryCluster()
    publish(cluster, tmp_path, FILE)
    assert publish(cluster, tmp_path, FILE, "node-1") == 0 and len(cluster.stored) == 2
    with pytest.raises(PoolwiseError, match=r"another node also publishes the pool gpu-a of "):
        publish(cluster, tmp_path, FILE.replace('node = "gpu-a"', 'node = "node-1"'), "node-1")
    owners = [resource_slice["metadata"]["ownerReferences"][0] for resource_slice in cluster.stored.values()]
    assert {(owner["kind"], owner["name"], owner["uid"]) for owner in owners} == {("Node", "gpu-a", "uid-of-gpu-a")}


def test_binding_conditions_and_reach_of_published_devices(tmp_path: Path) -> None:
    specs = desired_specs(node_agent_file(tmp_path, FILE.replace('reach = "all"', 'reach = "node"', 1)), "gpu-a")
    here, lent = specs["gpu-a"][0], specs["lent"][0]
    assert here["nodeName"] == "gpu-a" and here["devices"][0]["bindingConditions"] == [f"{DRIVER}/attached"]
    assert "bindsToNode" not in here["devices"][0]
    assert lent["allNodes"] and "bindingConditions" not in lent["devices"][0]
    labelled = desired_specs(node_agent_file(tmp_path, FILE.replace('reach = "all"', 'reach = { rack = "r0" }', 1)), "gpu-a")
    (term,) = labelled["gpu-a"][0]["nodeSelector"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r0"]}]}
    assert labelled["gpu-a"][0]["devices"][0]["bindsToNode"]


def test_slice_names_are_unique_and_short() -> None:
    names = {slice_name("n" * 253, DRIVER, pool, k) for pool in ("a", "b") for k in (0, 1)}
    assert len(names) == 4 and all(len(name) < 253 for name in names)
