"""Messages to users of pods that are not scheduled, delayed while the cause may still resolve itself."""

from __future__ import annotations

from collections.abc import Iterable

from poolwise.live.kubernetes.clock import LiveClock
from poolwise.units import SECOND

SETTLING = 3 * SECOND
"""Delay (ns) of messages about causes that usually resolve themselves: a missing claim, or missing pods of a group."""


class PodMessages:
    """Reasons why pods are not scheduled, with the time at which each is reported.

    Attributes
    ----------
    reasons : key of a pod -> reason
    """

    def __init__(self, clock: LiveClock) -> None:
        self.reasons: dict[str, str] = {}
        self._clock = clock
        self._due: dict[str, int] = {}  # key -> time of the report (ns)

    def record(self, keys: Iterable[str], why: str, *, settling: bool = False) -> None:
        """Record why pods are not scheduled; with `settling`, delay the report so that only the final reason is written."""
        now = self._clock.now
        for key in keys:
            if self.reasons.get(key) != why:
                self.reasons[key] = why
                self._due[key] = self._due.get(key, now + SETTLING) if settling else now

    def forget(self, key: str) -> None:
        """Drop the reason of a pod that can be scheduled or is gone."""
        self.reasons.pop(key, None)
        self._due.pop(key, None)

    def pop_due(self) -> dict[str, str]:
        """Return the reasons that are due, and request a pass for those that are not."""
        reported = {key: self.reasons[key] for key, due in sorted(self._due.items()) if due <= self._clock.now}
        for key in reported:
            del self._due[key]
        if self._due:
            self._clock.request_pass(min(self._due.values()) - self._clock.now)
        return reported
