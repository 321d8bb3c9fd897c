"""What objects of all kinds have: their form, name, identity and conditions."""

from __future__ import annotations

import msgspec


class ApiRecord(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, frozen=True):
    """Part of an object; fields that are not named here are dropped when it is read, and defaults when it is written."""


class OwnerReference(ApiRecord, frozen=True):
    """Who made an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(ApiRecord, frozen=True):
    """Name and identity of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []

    @property
    def key(self) -> str:
        """Namespace and name; the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(ApiRecord, frozen=True):
    """A condition of a node, a pod or a device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
