"""Types of devices: those among which requests choose are of one type, since schedulers ask for devices by their type.

A class of devices that is not asked for says nothing. Classes that have devices in common, or are alternatives of one request,
are of one type, named after the one with the most devices.
"""

from __future__ import annotations

from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.devices import DeviceId


def device_types(mirror: ClusterCache) -> tuple[dict[DeviceId, str], dict[str, str]]:
    """Device -> type, of all devices of the classes that claims ask for, and class -> type."""
    together = [
        [wanted.device_class_name for wanted in request.alternatives]
        for claim in mirror.claims.values()
        for request in claim.spec.devices.requests
    ]
    asked = sorted({name for names in together for name in names if name in mirror.classes})
    members = {
        name: {
            id
            for id, device in mirror.inventory.devices.items()
            if device.described.selected(mirror.classes[name].spec.selectors)
        }
        for name in asked
    }
    leader = {name: name for name in asked}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for names in together:
        known = [name for name in names if name in members]
        for name in known[1:]:
            leader[find(name)] = find(known[0])
    first: dict[DeviceId, str] = {}
    for name in asked:
        for id in members[name]:
            leader[find(name)] = find(first.setdefault(id, name))
    groups: dict[str, list[str]] = {}
    for name in asked:
        groups.setdefault(find(name), []).append(name)
    classes = {name: min(group, key=lambda k: (-len(members[k]), k)) for group in groups.values() for name in group}
    return {id: classes[name] for name in asked for id in members[name]}, classes
