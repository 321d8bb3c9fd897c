"""Utility cost model: utility of the expected completion time, with or without the load of the network.

Source: Amaral et al., DRMaestro, equations 6 to 8 and "The network-aware (NA) policy"; flow-placement spec, "Costs".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.performance.device_profiles import DeviceProfile, read_device_profiles
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.registry import InputFile, register

MOST_PASSES = 10_000
"""Cap of W, the number of passes in which a job was skipped (assumed)."""
WORST = -1000.0
"""Lower bound of the utility, so that a single hopeless task cannot outweigh all others (assumed)."""


@register("costs", "utility")
@dataclass(frozen=True)
class Utility(CostModel):
    """Utility of the expected completion time relative to the goal, optionally network-aware (DRMaestro).

    Placing costs (1 - U) P; waiting costs 1 + W + the cost of the most expensive arc.

    Parameters
    ----------
    profiles
        Times of the kinds of jobs: "catalog:NAME" or a CSV file. A kind without a profile has utility 0.
    network_aware
        Take the current load of the links into account, and remove arcs on which the goal would be missed; the task then waits
        for a better moment.
    slack
        Fraction of the goal by which a network-aware placement may exceed it.
    preference
        P of preferred places; it is 1 elsewhere (assumed).
    max_placed
        Make waiting more expensive than all placements together, so that no task waits that could be placed by moving others.
    """

    profiles: InputFile = "catalog:rodinia"
    network_aware: bool = False
    slack: float = 0.0
    preference: float = 0.5
    max_placed: bool = False

    @property
    def looks_at(self) -> frozenset[str]:
        """The load, if the model is network-aware."""
        return frozenset({"load"} if self.network_aware else ())

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the cost by equation 7; inf if the goal would be missed, unless it would be missed even on an idle machine.

        A kind that would lose every arc on an idle machine keeps the cheapest of its fastest arcs there.
        """
        table = self._table(tasks)
        idle = np.array([profile.time(places.remote) if profile else np.nan for profile in table])[:, None]
        time = np.broadcast_to(idle, (len(tasks), len(places)))
        if places.remote and self.network_aware:
            load = np.maximum(tasks.load[:, None], places.load[None, :])
            time = idle * (1.0 + _column(table, "sensitivity") * load)
        goal = _column(table, "goal_s")
        cost = (1.0 - utility(time, goal, _column(table, "importance"))) * (self.preference if places.preferred else 1.0)
        if self.network_aware and (places.preferred or places.remote):
            hopeless, best = self._hopeless(tasks, table)
            cheapest = (idle <= best[:, None]) & (cost <= cost.min(axis=1, keepdims=True, initial=np.inf))
            cost = np.where(np.where(hopeless[:, None], ~cheapest, self._missed(time, goal)), np.inf, cost)
        return cost[:, :, None]

    def hopeless(self, tasks: TaskClasses) -> BoolArray:
        """Return whether a task would lose every arc on an idle machine, (n_class,)."""
        return self._hopeless(tasks, self._table(tasks))[0] if self.network_aware else np.zeros(len(tasks), dtype=np.bool_)

    def _hopeless(self, tasks: TaskClasses, table: list[DeviceProfile | None]) -> tuple[BoolArray, FloatArray]:
        """Return `hopeless` (n_class,), and the least time on an idle machine (n_class,)."""
        local, remote = _column(table, "local_s")[:, 0], _column(table, "remote_s")[:, 0]
        best = np.where(tasks.local, np.minimum(local, remote), remote)
        return self._missed(best, _column(table, "goal_s")[:, 0]), best

    def _table(self, tasks: TaskClasses) -> list[DeviceProfile | None]:
        profiles = read_device_profiles(self.profiles)
        return [profiles.get(kind) for kind in tasks.kind]

    def _missed(self, time: FloatArray, goal: FloatArray) -> BoolArray:
        return time > (1.0 + self.slack) * goal  # False without a profile

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return the cost by equation 8, or with `max_placed` a cost so high that waiting is the last resort."""
        patience = np.minimum(waiting.passes, MOST_PASSES).astype(np.float64)
        if self.max_placed:
            return 1.0 + patience + waiting.tasks * float(waiting.dearest.max(initial=0.0))
        return 1.0 + patience + waiting.dearest


def utility(time: FloatArray, goal: FloatArray, importance: FloatArray) -> FloatArray:
    """Return the utility U of a completion time: in [0, 1] if the goal is met, below 0 otherwise; 0 for unknown times.

    Parameters
    ----------
    time
        (...,) expected completion time, phi.
    goal
        (...,) desired average completion time, tau > 0.
    importance
        (...,) z, from 1 (a missed goal counts fully) to 10 (it does not count).

    Source: equation 6, clipped at `WORST`.
    """
    gain = (goal - time) / goal
    value = np.where(gain >= 0, gain, gain * (10.0 - importance) / 9.0)
    bounded: FloatArray = np.clip(np.nan_to_num(value, nan=0.0), WORST, 1.0)
    return bounded


def _column(table: list[DeviceProfile | None], name: str) -> FloatArray:
    """Return one attribute of each profile, (n_class, 1); NaN without a profile."""
    return np.array([getattr(profile, name) if profile else np.nan for profile in table], dtype=np.float64)[:, None]
