"""Device types: schedulers request devices by type, so devices that one request may choose from share a type.

Only device classes that claims request count. Classes with common devices, and alternatives of one request, form one type. It
is named after the class with the most devices.
"""

from __future__ import annotations

from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.devices import DeviceId


def device_types(cache: ClusterCache) -> tuple[dict[DeviceId, str], dict[str, str]]:
    """Return device -> type, for all devices of requested classes, and class -> type."""
    together = [
        [wanted.device_class_name for wanted in request.alternatives]
        for claim in cache.claims.values()
        for request in claim.spec.devices.requests
    ]
    asked = sorted({name for names in together for name in names if name in cache.classes})
    members = {
        name: {
            id for id, device in cache.inventory.devices.items() if device.described.matches(cache.classes[name].spec.selectors)
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
