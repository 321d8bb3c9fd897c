"""Leases, by which schedulers elect a leader."""

from __future__ import annotations

from poolwise.live.kubernetes.objects.meta import ApiRecord, Meta


class LeaseSpec(ApiRecord, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()
