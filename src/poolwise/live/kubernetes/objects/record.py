"""Base types of Kubernetes objects: serialization, metadata, owners and conditions."""

from __future__ import annotations

import msgspec


class ApiRecord(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, frozen=True):
    """Base of all API types; decoding drops undeclared fields, encoding omits defaults."""


class OwnerReference(ApiRecord, frozen=True):
    """Reference to the owner of an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(ApiRecord, frozen=True):
    """Metadata of an object."""

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
        """Namespace and name; the name alone for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(ApiRecord, frozen=True):
    """A condition of a node, a pod or a device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
