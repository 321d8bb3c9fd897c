"""Why pods are left alone, and when they are told."""

from __future__ import annotations

from collections.abc import Iterable

from poolwise.live.kubernetes.clock import LiveClock
from poolwise.units import SECOND

SETTLING = 3 * SECOND
"""Ns for which a pod lacks something that others are about to bring, before it is told: its claim, the rest of its group."""


class PodMessages:
    """Notes of pods that are left alone, each until it is told or holds no longer.

    Attributes
    ----------
    why : key of a pod that is left alone -> why
    """

    def __init__(self, clock: LiveClock) -> None:
        self.why: dict[str, str] = {}
        self._clock = clock
        self._due: dict[str, int] = {}  # key -> when it is told

    def leave(self, keys: Iterable[str], why: str, *, settling: bool = False) -> None:
        """Leave pods alone; `settling` where that may be over in a moment, so that only what stands then is told."""
        now = self._clock.now
        for key in keys:
            if self.why.get(key) != why:
                self.why[key] = why
                self._due[key] = self._due.get(key, now + SETTLING) if settling else now

    def forget(self, key: str) -> None:
        """A pod is left alone no longer, or gone."""
        self.why.pop(key, None)
        self._due.pop(key, None)

    def pop_due(self) -> dict[str, str]:
        """Pods that are to be told now, and what; a pass is wanted when others are."""
        told = {key: self.why[key] for key, due in sorted(self._due.items()) if due <= self._clock.now}
        for key in told:
            del self._due[key]
        if self._due:
            self._clock.retry(min(self._due.values()) - self._clock.now)
        return told
