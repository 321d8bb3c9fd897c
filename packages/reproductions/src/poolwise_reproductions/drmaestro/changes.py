"""Assumptions of the job profiles, and changes that show which conclusions depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from poolwise.performance.device_profiles import DeviceProfile


@dataclass(frozen=True)
class Change:
    """Factors and values that replace assumptions of the profiles; measured numbers are unchanged.

    Attributes
    ----------
    remote : factor of remote times and of the goals that are derived from them
    sensitivity : factor of the slowdown under full load, for kinds whose slowdown was not published
    goal : factor of the goals
    link : factor of the traffic that jobs send over links
    spread : spread of the times; None keeps it
    neighbors : both sensitivities to neighbors; None keeps them
    local_s : local time of all kinds, with remote times and goals scaled accordingly; None keeps it
    importance : z of the utility, from 1 (a missed goal counts fully) to 10 (not at all); None keeps it
    cores : cores per job; None keeps them
    warm_up : factor of the time until the warm-up jobs end
    every_s : seconds between scheduling rounds
    at_ends : whether a round also runs whenever a task ends
    """

    remote: float = 1.0
    sensitivity: float = 1.0
    goal: float = 1.0
    link: float = 1.0
    spread: float | None = None
    neighbors: float | None = None
    local_s: float | None = None
    importance: float | None = None
    cores: int | None = None
    warm_up: float = 1.0
    every_s: float = 0.0
    at_ends: bool = True

    def apply(self, profile: DeviceProfile) -> DeviceProfile:
        """Return the changed profile."""
        scale = 1.0 if self.local_s is None else self.local_s / profile.local_s
        remote = profile.remote_s * scale * self.remote
        more = profile.sensitivity * (self.sensitivity if "loaded_s" in profile.assumed else 1.0)
        changed = replace(
            profile,
            local_s=profile.local_s * scale,
            remote_s=remote,
            loaded_s=remote * (1.0 + more),
            goal_s=profile.goal_s * scale * self.remote * self.goal,
            link_mb_s=profile.link_mb_s * self.link,
        )
        if self.neighbors is not None:
            changed = replace(changed, cpu_sensitivity=self.neighbors, device_sensitivity=self.neighbors)
        replacements = {"spread": self.spread, "importance": self.importance, "cores": self.cores}
        return replace(changed, **{name: value for name, value in replacements.items() if value is not None})  # type: ignore[arg-type]  # mypy takes the dictionary for one type


TWICE_THE_LINKS = "twice the link use"
CHANGES: Mapping[str, Change] = {
    "remote times 1.3 x local": Change(remote=1.3 / 1.475),
    "remote times 1.65 x local": Change(remote=1.65 / 1.475),
    "half the stretch under load": Change(sensitivity=0.5),
    "twice the stretch under load": Change(sensitivity=2.0),
    "goal = remote time": Change(goal=1 / 1.1),
    "goal = 1.3 x remote time": Change(goal=1.3 / 1.1),
    "half the link use": Change(link=0.5),
    TWICE_THE_LINKS: Change(link=2.0),
    "no spread of times": Change(spread=0.0),
    "spread of times 0.4": Change(spread=0.4),
    "neighbours do not matter": Change(neighbors=0.0),
    "neighbours cost 15 %": Change(neighbors=0.15),
    "all kinds 75 s": Change(local_s=75.0),
    "a missed goal counts a ninth": Change(importance=9.0),
    "40 threads a job": Change(cores=40),
    "warm-up half as long": Change(warm_up=0.5),
    "warm-up twice as long": Change(warm_up=2.0),
    "a round every 5 s": Change(every_s=5.0),
    "a round every 5 s, none at ends": Change(every_s=5.0, at_ends=False),
}

FIXED = "a round every 5 s, none at ends"
"""The change under which rounds are timed: the paper runs its scheduler at a fixed interval."""
FITS: Mapping[str, Change] = {f"remote times x {k:g}": Change(remote=k) for k in (0.8, 0.85, 0.9, 0.95, 1.0, 1.05)}
"""Candidate factors of the remote times; the one that fits one setting of the paper best is chosen."""
