"""Checks of a cluster before a scheduler runs on it: obstacles, each with a remedy."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

import msgspec

from poolwise.errors import InputError
from poolwise.live.kubernetes.access import Access
from poolwise.live.kubernetes.client import ApiError, Client
from poolwise.live.kubernetes.devices import Inventory
from poolwise.live.kubernetes.link_traffic import publishes_links
from poolwise.live.kubernetes.machine import is_usable
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceClass, ResourceSlice
from poolwise.live.kubernetes.objects.lease import Lease
from poolwise.live.kubernetes.objects.meta import Namespace
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.rights import LEASE_RIGHTS, SCHEDULER_RIGHTS, SHADOW_RIGHTS, Right
from poolwise.live.kubernetes.watch_client import OPTIONAL_KINDS
from poolwise.quantities import format_count

OLDEST = (1, 34)
"""First version of Kubernetes with resource.k8s.io/v1."""
_DRA = "/apis/resource.k8s.io/v1"
_LISTS: dict[type, str] = {
    Node: "/api/v1/nodes",
    Namespace: "/api/v1/namespaces",
    Pod: "/api/v1/pods",
    DeviceClass: f"{_DRA}/deviceclasses",
    ResourceSlice: f"{_DRA}/resourceslices",
    ResourceClaim: f"{_DRA}/resourceclaims",
}
_APPLY = "apply deploy/kubernetes/{file} and bind the role to this account"


@dataclass(frozen=True)
class ClusterCheck:
    """One check: `failed` if something would not work, `note` if something is worth knowing."""

    name: str
    status: Literal["ok", "note", "failed"]
    finding: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.status:<7}{self.name}: {self.finding}{f'; {self.remedy}' if self.remedy else ''}"


class Reader(Protocol):
    """The requests of `Client` that the checks send."""

    async def get(self, path: str, **params: str) -> bytes:
        """Read a path and return the response body; raise ApiError."""
        ...

    async def send(self, method: str, path: str, body: Any = None) -> bytes:
        """Send a request and return the response body; raise ApiError."""
        ...


@dataclass
class Doctor:
    """Checks a cluster with the credentials of a client; nothing is changed.

    Attributes
    ----------
    names : values of schedulerName of the pods to schedule
    lease : namespace and name of the lease; None without one, as in shadow mode
    shadow : whether the scheduler would run in shadow mode, which only reads
    """

    client: Reader
    names: Sequence[str]
    lease: tuple[str, str] | None
    shadow: bool = False
    _items: dict[type, list[Any]] = field(default_factory=dict, init=False)  # objects of each kind that could be listed

    async def examine(self) -> list[ClusterCheck]:
        """Return all checks; only the first ones if the server does not respond."""
        version = await self._version()
        if version.status == "failed" and not version.finding.startswith("Kubernetes"):
            return [version]
        api = await self._api_groups()
        rights = await asyncio.gather(*(self._right(right) for right in self._rights()))
        for kind, path in _LISTS.items():
            await self._list(kind, path)
        inventory = Inventory({item.metadata.name: item for item in self._items.get(DeviceClass, ())})
        for item in self._items.get(ResourceSlice, ()):
            if not publishes_links(item):
                inventory.apply_slice(item)
        checks = [version, *api, *rights, *self._nodes(), *self._drivers(inventory), *self._classes(inventory)]
        return [*checks, *self._other_schedulers(inventory), *([] if self.lease is None else [await self._lease(*self.lease)])]

    async def _version(self) -> ClusterCheck:
        try:
            content = msgspec.json.decode(await self.client.get("/version"))
        except ApiError as error:
            remedy = "check --kubeconfig, the address and the credentials"
            return ClusterCheck("API server", "failed", f"it does not respond: {error}", remedy)
        text = str(content.get("gitVersion", ""))
        numbers = re.match(r"v(\d+)\.(\d+)", text)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            return ClusterCheck("API server", "failed", f"Kubernetes {text} is too old", f"upgrade to {oldest} or later")
        return ClusterCheck("API server", "ok", f"Kubernetes {text}")

    async def _api_groups(self) -> list[ClusterCheck]:
        served = await self._served(f"{_DRA}/resourceclaims")
        checks = [
            ClusterCheck("API group", "ok", "resource.k8s.io/v1 is served")
            if served
            else ClusterCheck(
                "API group", "failed", "resource.k8s.io/v1 is not served: the scheduler does not start", "enable this API"
            )
        ]
        absent = {
            "PodGroup": "it is not served: gangs are defined by pod labels",
            "DeviceTaintRule": "it is not served: only drivers taint devices",
        }
        for kind, paths in OPTIONAL_KINDS:
            if kind.__name__ in absent:
                found_paths = [path for path in paths if await self._served(path)]
                path = found_paths[0] if found_paths else None
                finding = absent[kind.__name__] if path is None else f"{path.removeprefix('/apis/').rpartition('/')[0]}"
                checks.append(ClusterCheck(kind.__name__, "note" if path is None else "ok", finding))
        return checks

    async def _served(self, path: str) -> bool:
        """Return whether the server has a resource, according to its discovery document."""
        group, _, resource = path.rpartition("/")
        try:
            content = msgspec.json.decode(await self.client.get(group))
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return any(item["name"] == resource for item in content.get("resources", ()))

    def _rights(self) -> Sequence[Right]:
        if self.shadow:
            return SHADOW_RIGHTS
        return [*SCHEDULER_RIGHTS, *(LEASE_RIGHTS if self.lease is not None else ())]

    async def _right(self, right: Right) -> ClusterCheck:
        denied = [permission for permission in right.each() if not await self._is_permitted(right, *permission)]
        subject = f"right to {'/'.join(right.verbs)} {', '.join(right.resources)}"
        if not denied:
            return ClusterCheck(subject, "ok", "granted")
        missing = ", ".join(f"{verb} {resource}" for resource, verb in denied)
        remedy = _APPLY.format(file="shadow.yaml" if self.shadow else "rbac.yaml")
        return ClusterCheck(subject, "failed", f"{missing} is not permitted: {right.effect}", remedy)

    async def _is_permitted(self, right: Right, resource: str, verb: str) -> bool:
        name, _, sub = resource.partition("/")
        wanted = {"group": right.group, "resource": name, "subresource": sub, "verb": verb}
        if right.of_lease and self.lease is not None:
            wanted |= {"namespace": self.lease[0], "name": self.lease[1] if right.named else ""}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        answer = await self.client.send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
        return bool(msgspec.json.decode(answer)["status"].get("allowed"))

    async def _list(self, kind: type, path: str) -> None:
        """Read all objects of a kind; if that is impossible, the checks of rights and API groups report why."""
        try:
            content = msgspec.json.decode(await self.client.get(path), type=dict[str, msgspec.Raw])
        except ApiError as error:
            if error.is_temporary:
                raise
            return
        self._items[kind] = [
            msgspec.json.decode(item, type=kind) for item in msgspec.json.decode(content["items"], type=list[msgspec.Raw])
        ]

    def _nodes(self) -> Iterator[ClusterCheck]:
        if Node in self._items:
            usable = sum(is_usable(node) for node in self._items[Node])
            if usable:
                yield ClusterCheck("nodes", "ok", f"{usable:,} with allocatable resources")
            else:
                yield ClusterCheck("nodes", "failed", "no node has allocatable resources: no pod starts", "add a node")

    def _drivers(self, inventory: Inventory) -> Iterator[ClusterCheck]:
        """Yield the devices of each driver, and the pools whose slices are incomplete."""
        if ResourceSlice not in self._items:
            return
        pools: dict[str, dict[str, list[ResourceSlice]]] = {}
        for item in self._items[ResourceSlice]:
            if not publishes_links(item):
                pools.setdefault(item.spec.driver, {}).setdefault(item.spec.pool.name, []).append(item)
        if not pools:
            yield ClusterCheck("drivers", "note", "no driver publishes devices: pods that claim devices wait")
        complete = {device[:2] for device in inventory.devices}
        for driver, by_name in sorted(pools.items()):
            many = sum(device.driver == driver for device in inventory.devices)
            lacking = [
                name
                for name, slices in by_name.items()
                if (driver, name) not in complete and any(item.spec.devices for item in slices)
            ]
            if lacking:
                finding = f"the slices of pool {min(lacking)} are incomplete or name a device twice"
                more = f" (and of {format_count(len(lacking) - 1, 'other pool')})" if len(lacking) > 1 else ""
                effect = "its devices are not allocated"
                remedy = "check the driver's logs"
                yield ClusterCheck(f"driver {driver}", "failed", f"{finding}{more}: {effect}", remedy)
            else:
                yield ClusterCheck(
                    f"driver {driver}", "ok", f"{format_count(many, 'device')} in {format_count(len(by_name), 'pool')}"
                )

    def _classes(self, inventory: Inventory) -> Iterator[ClusterCheck]:
        """Yield device classes whose expressions are not supported."""
        for item in self._items.get(DeviceClass, ()):
            try:
                for device in inventory.devices.values():
                    device.described.matches(item.spec.selectors)
            except InputError as problem:
                effect = "pods that claim it do not start"
                remedy = problem.remedy or "change its selectors"
                yield ClusterCheck(f"device class {item.metadata.name}", "failed", f"{problem.message}: {effect}", remedy)

    def _other_schedulers(self, inventory: Inventory) -> Iterator[ClusterCheck]:
        """Yield the drivers whose devices pods of other schedulers use or claim."""
        if Pod not in self._items or ResourceClaim not in self._items:
            return
        users = _schedulers_by_driver(self._items[Pod], self._items[ResourceClaim], _drivers_of_classes(inventory, self._items))
        own = " and ".join(self.names)
        shared = {driver: others for driver, names in sorted(users.items()) if (others := sorted(names.difference(self.names)))}
        if not shared:
            yield ClusterCheck("other schedulers", "ok", "no other scheduler allocates devices")
        for driver, names in shared.items():
            finding = f"devices of {driver} are claimed by pods of {', '.join(names)}"
            if users[driver].intersection(self.names) and not self.shadow:
                finding += f" and of {own}: a device may be allocated twice"
                remedy = f"set the same schedulerName in all pods that claim devices of {driver}"
                yield ClusterCheck("other schedulers", "failed", finding, remedy)
            else:
                remedy = "" if self.shadow else f"do not claim them in pods of {own}"
                yield ClusterCheck("other schedulers", "note", finding, remedy)

    async def _lease(self, namespace: str, name: str) -> ClusterCheck:
        subject = f"lease {namespace}/{name}"
        namespaces = {item.metadata.name for item in self._items.get(Namespace, ())}
        if namespaces and namespace not in namespaces:
            finding = f"namespace {namespace} does not exist: the scheduler exits"
            return ClusterCheck(subject, "failed", finding, "apply deploy/kubernetes/rbac.yaml, or set --lease")
        try:
            text = await self.client.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
        except ApiError as error:
            if error.status == 404:
                return ClusterCheck(subject, "ok", "free: it does not exist yet")
            return ClusterCheck(subject, "failed", f"it cannot be read: {error}", _APPLY.format(file="rbac.yaml"))
        lease = msgspec.json.decode(text, type=Lease)
        if not lease.spec.holder_identity:
            return ClusterCheck(subject, "ok", "free")
        age = _age(lease.spec.renew_time)
        if age is None or age > (lease.spec.lease_duration_seconds or 0):
            return ClusterCheck(subject, "ok", f"expired; {lease.spec.holder_identity} held it")
        finding = f"held by {lease.spec.holder_identity}, renewed {max(age, 0.0):.0f} s ago: another replica waits for it"
        return ClusterCheck(subject, "note", finding)


async def examine_cluster(
    access: Access, names: Sequence[str], lease: tuple[str, str] | None, *, shadow: bool
) -> list[ClusterCheck]:
    """Connect to a cluster and return all checks; raise InputError if it stops responding."""
    client = Client(access, timeout=10.0)
    try:
        return await Doctor(client, names, lease, shadow).examine()
    except ApiError as error:
        problem = f"the API server at {access.server} failed: {error}"
        raise InputError(problem, field="--kubeconfig", remedy="run the command again") from error
    finally:
        await client.close()


def _age(stamp: str | None) -> float | None:
    return None if not stamp else (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()


def _drivers_of_classes(inventory: Inventory, items: Mapping[type, Sequence[Any]]) -> dict[str, set[str]]:
    """Return device class -> drivers of its devices, without classes that cannot be evaluated."""
    drivers: dict[str, set[str]] = {}
    for item in items.get(DeviceClass, ()):
        try:
            matching = [id for id, device in inventory.devices.items() if device.described.matches(item.spec.selectors)]
        except InputError:
            continue
        drivers[item.metadata.name] = {id.driver for id in matching}
    return drivers


def _schedulers_by_driver(
    pods: Iterable[Pod], claims: Iterable[ResourceClaim], by_class: Mapping[str, set[str]]
) -> dict[str, set[str]]:
    """Return driver -> schedulers of the pods that use or claim its devices."""
    drivers: dict[str, set[str]] = {}
    reserved: dict[str, set[str]] = {}  # uid of a pod -> drivers
    for claim in claims:
        used = {result.driver for result in claim.allocated_devices}
        drivers[claim.metadata.key] = used or {
            d for request in claim.wanted for d in by_class.get(request.device_class_name, ())
        }
        for user in claim.status.reserved_for:
            reserved.setdefault(user.uid, set()).update(used)
    schedulers: dict[str, set[str]] = {}
    for pod in pods:
        if pod.terminated:
            continue
        made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        names = [reference.resource_claim_name or made.get(reference.name) for reference in pod.spec.resource_claims]
        if (extended := pod.status.extended_resource_claim_status) is not None:
            names.append(extended.resource_claim_name)
        mine = {driver for name in names for driver in drivers.get(f"{pod.metadata.namespace}/{name}", ())}
        for driver in mine | reserved.get(pod.metadata.uid, set()):
            schedulers.setdefault(driver, set()).add(pod.spec.scheduler_name)
    return schedulers
