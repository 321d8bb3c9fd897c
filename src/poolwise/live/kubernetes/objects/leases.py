"""Leases for leader election."""

from __future__ import annotations

from poolwise.live.kubernetes.objects.record import ApiRecord, Meta


class LeaseSpec(ApiRecord, frozen=True):
    """Holder and timing of a lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiRecord, frozen=True):
    """A lease."""

    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()
