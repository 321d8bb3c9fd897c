"""Builders of Kubernetes objects for tests."""

from __future__ import annotations

from typing import Any

RACK = "topology.kubernetes.io/rack"


def node(name: str, rack: str = "r0", cpu: str = "16", memory: str = "64Gi", **more: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory, "pods": "110", **more.pop("resources", {})}
    meta = {"name": name, "labels": {RACK: rack, **more.pop("labels", {})}, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": more,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, cpu: str = "1", memory: str = "1Gi", seconds: float | None = 2, **more: Any) -> dict[str, Any]:
    notes = {"poolwise/runtime": f"{int(seconds * 1000)}ms", "poolwise/duration": f"{seconds} s"} if seconds is not None else {}
    meta = {"name": name, "namespace": "default", "annotations": notes, "labels": more.pop("labels", {})}
    requests = {"cpu": cpu, "memory": memory, **more.pop("resources", {})}
    claims = more.pop("claims", {})
    main: dict[str, Any] = {"name": "main", "image": "none", "resources": {"requests": requests}}
    if more.get("extended"):
        main["resources"]["limits"] = requests = {**requests, **more.pop("extended")}
        main["resources"]["requests"] = requests
    spec: dict[str, Any] = {"schedulerName": "poolwise", "containers": [main], **more}
    if claims:
        spec["resourceClaims"] = [{"name": key, **value} for key, value in claims.items()]
        main["resources"]["claims"] = [{"name": key} for key in claims]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def template(name: str, *requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": list(requests), **more}}},
    }


def claim(name: str, *requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": list(requests), **more}},
    }


def exactly(kind: str, name: str = "device", **more: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": kind, **more}}


def device_class(name: str, driver: str) -> dict[str, Any]:
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def devices(driver: str, pool: str, *items: dict[str, Any], **where: Any) -> dict[str, Any]:
    """Return a resource slice; `where` is node=NAME or rack=NAME, else every node."""
    place: dict[str, Any] = {"allNodes": True}
    if "node" in where:
        place = {"nodeName": where["node"]}
    elif "rack" in where:
        term = {"matchExpressions": [{"key": RACK, "operator": "In", "values": [where["rack"]]}]}
        place = {"nodeSelector": {"nodeSelectorTerms": [term]}}
    spec = {"driver": driver, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}, "devices": list(items), **place}
    name = f"{driver}-{pool}".replace(".", "-")
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def memory_pool(name: str, size: str) -> dict[str, Any]:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    return {"name": name, "allowMultipleAllocations": True, "capacity": {"memory": {"value": size, "requestPolicy": policy}}}


def taint_rule(name: str, key: str, effect: str, **selector: Any) -> dict[str, Any]:
    """Return a rule that taints all devices with a driver, pool or device name."""
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector, "taint": {"key": key, "effect": effect}},
    }


def storage_class(name: str, provisioner: str, **more: Any) -> dict[str, Any]:
    """Return a storage class that waits for the first consumer, unless it has another mode."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        **more,
    }


def volume(name: str, node: str | None = None, kind: str = "", **more: Any) -> dict[str, Any]:
    """Return a local volume on a node, or a volume that serves every node."""
    spec: dict[str, Any] = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": kind, **more}
    if node is None:
        spec["nfs"] = {"server": "none", "path": "/"}
    else:
        here = {"key": "metadata.name", "operator": "In", "values": [node]}
        spec |= {"local": {"path": "/data"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": [here]}]}}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def volume_claim(name: str, kind: str = "", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": kind,
            **more,
        },
    }
