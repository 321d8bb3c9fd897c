"""Base of all Kubernetes objects, and their metadata and conditions."""

from __future__ import annotations

import msgspec


class ApiRecord(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, frozen=True):
    """Base of all API types; decoding drops undeclared fields, encoding omits defaults."""


class OwnerReference(ApiRecord, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Meta(ApiRecord, frozen=True):
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

    def is_older_than(self, other: Meta) -> bool:
        """Return whether this version of the object is older than another; versions are comparable since Kubernetes 1.35."""
        versions = self.resource_version, other.resource_version
        return all(version.isdigit() for version in versions) and int(versions[0]) < int(versions[1])


class Condition(ApiRecord, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class Namespace(ApiRecord, frozen=True):
    metadata: Meta = Meta()


class ResourceRequests(ApiRecord, frozen=True):
    requests: dict[str, str] = {}
