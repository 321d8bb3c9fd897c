"""Batch placement problem: workloads, the CPU modules that may run them, one shared remote memory, and the objective.

Source: Sefati et al., IRoP, Problems 1 and 2, equation (6); the explanation page on batch placement covers what the paper
leaves open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.performance.profiles import Profile

Theta = Literal["printed", "relative"]
UNKNOWN = Profile("unknown", (0.0, 1e-17), (0.0, 0.0), source="no remote share was measured, so all memory is local")
"""Profile of a workload that was never profiled."""
LEAST_WIDTH = 1e-12
"""Share of a workload's memory below which a piece of its profile counts as rounding; it makes linear programs imprecise."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Base class of records whose fields are columns of equal length, as tuples or arrays."""

    name: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.name)

    def select_rows(self, rows: IntArray) -> Self:
        """Return the given rows, (k,), in the given order."""
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        some = {
            name: tuple(column[r] for r in rows.tolist()) if isinstance(column, tuple) else column[rows]
            for name, column in columns.items()
        }
        return replace(self, **some)


@dataclass(frozen=True, eq=False)
class Batch(Columns):
    """Workloads to be placed together.

    Attributes
    ----------
    name : n names
    cores : (n,) int64, nu
    frequency : (n,) phi, in the unit of the modules' frequencies
    memory : (n,) mu, MiB
    tolerance : (n,) Delta, largest accepted slowdown theta
    priority : (n,) int64; if not all workloads can be placed, those of lowest priority are dropped first (of equal ones, the
        last)
    profile : n profiles P^m
    """

    cores: IntArray
    frequency: FloatArray
    memory: FloatArray
    tolerance: FloatArray
    priority: IntArray
    profile: tuple[Profile, ...]

    def __post_init__(self) -> None:
        for array in (self.cores, self.frequency, self.memory, self.tolerance, self.priority):
            frozen(array)
        for field_, values, least in (
            ("cores", self.cores, 1),
            ("frequency", self.frequency, 1e-9),
            ("memory", self.memory, 1e-9),
            ("tolerance", self.tolerance, 0),
        ):
            if len(values) and not (float(np.min(values)) >= least and np.isfinite(values).all()):
                worst = self.name[int(np.argmin(values))]
                raise InputError(
                    f"workload '{worst}': {field_} is too small or not a number", field=field_, remedy="correct it"
                )
        for profile in self.profile:
            if not profile.is_monotone:
                raise InputError(
                    f"profile '{profile.name}' decreases with more remote memory, so no share of memory bounds the slowdown",
                    field="profile",
                    remedy="fit a monotone profile with `poolwise profile fit`",
                )

    def without_profile(self, rows: IntArray) -> Batch:
        """Return the batch with some workloads, (k,) rows, treated as unprofiled: zero tolerance, and all memory local.

        Source: Sefati et al., section II-B: a workload without a profile "is treated with zero tolerance".
        """
        tolerance, unknown = self.tolerance.copy(), set(rows.tolist())
        tolerance[rows] = 0.0
        profile = tuple(UNKNOWN if w in unknown else own_profile for w, own_profile in enumerate(self.profile))
        return replace(self, tolerance=tolerance, profile=profile)

    @cached_property
    def kinds(self) -> list[tuple[Profile, IntArray]]:
        """Distinct profiles, each with the rows of the workloads that have it."""
        rows: dict[Profile, list[int]] = {}
        for w, profile in enumerate(self.profile):
            rows.setdefault(profile, []).append(w)
        return [(profile, np.array(own, dtype=np.int64)) for profile, own in rows.items()]

    def curve(self, rows: IntArray, remote: FloatArray) -> FloatArray:
        """Return P^m of workloads (k,) at fractions of remote memory, (k, ...), as an array of the same shape."""
        value = np.empty_like(remote)
        kind = np.empty(len(self), dtype=np.int64)
        for number, (_, own) in enumerate(self.kinds):
            kind[own] = number
        for number, (profile, _) in enumerate(self.kinds):
            here = kind[rows] == number
            value[here] = profile.at(remote[here])
        return value

    @cached_property
    def by_priority(self) -> IntArray:
        """Rows by descending priority, (n,); input order among equals."""
        return np.argsort(-self.priority, kind="stable")


@dataclass(frozen=True, eq=False)
class Modules(Columns):
    """CPU modules with local memory that only they can reach.

    Attributes
    ----------
    name : m names
    cores : (m,) int64, N, all cores of the module
    frequency : (m,) F
    memory : (m,) L, MiB of free local memory
    static, dynamic : (m,) I^s and I^d, energy of the module when it is on, and additional energy at full load
    free_cores : (m,) int64, free cores
    on : (m,) whether the module is on already, so that its static energy is spent anyway
    """

    cores: IntArray
    frequency: FloatArray
    memory: FloatArray
    static: FloatArray
    dynamic: FloatArray
    free_cores: IntArray
    on: BoolArray

    def __post_init__(self) -> None:
        for array in (self.cores, self.frequency, self.memory, self.static, self.dynamic, self.free_cores, self.on):
            frozen(array)
        if len(self.name) and (float(self.frequency.min()) <= 0 or int(self.cores.min()) < 1):
            raise InputError("a module needs at least one core and a frequency above 0", field="module", remedy="correct it")


@dataclass(frozen=True, eq=False)
class Problem:
    """Problem 1 (DWLP): place every workload on one module and split its memory.

    Parameters
    ----------
    batch, modules
        Workloads to place, and modules to place them on.
    remote
        M, MiB of remote memory.
    eta
        Weight of energy in [0, 1]; the slowdowns have the weight 1 - eta.
    theta
        "printed": P^m(1 - x) phi / F, as in equation (4i), which is 0 on any module if all memory is local;
        "relative": (1 + P^m(1 - x)) phi / F - 1, which penalizes slow modules too.
    clip
        Count a negative theta (a run faster than requested) as 0.
    normalise
        Divide the slowdowns by the sum of the tolerances, and energy by the cost of the cores on the best module at full
        load.
    least_local
        Minimum fraction of local memory, .25 in equation (4h).
    """

    batch: Batch
    modules: Modules
    remote: float
    eta: float = 0.5
    theta: Theta = "relative"
    clip: bool = False
    normalise: bool = False
    least_local: float = 0.25
    groups: Groups = field(init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.eta <= 1:
            raise InputError(f"must be in [0, 1], got {self.eta}", field="eta", remedy="give a number in [0, 1]")
        if not 0 < self.least_local <= 1:
            raise InputError(
                f"must be in (0, 1], got {self.least_local}", field="least_local", remedy="give a number in (0, 1]"
            )
        if not self.remote >= 0:
            raise InputError("remote memory must not be negative", field="remote", remedy="give 0 or more")
        object.__setattr__(self, "groups", Groups.of(self.modules))

    def with_batch(self, rows: IntArray) -> Problem:
        """Return the problem for some workloads, (k,) rows. Normalized weights differ from those of the whole batch."""
        return replace(self, batch=self.batch.select_rows(rows))

    @cached_property
    def weights(self) -> tuple[float, float]:
        """Weights of theta and of energy in the objective, per unit of each."""
        if not self.normalise:
            return 1 - self.eta, self.eta
        full = (self.modules.static + self.modules.dynamic) / self.modules.cores
        energy = float(full.min()) * float(self.batch.cores.sum()) if len(full) else 1.0
        slowdown = float(self.batch.tolerance.sum())
        return (1 - self.eta) / (slowdown or 1.0), self.eta / (energy or 1.0)

    @cached_property
    def pace(self) -> FloatArray:
        """P^f, (n, g): completion time on a module of the group, relative to the requested frequency, with local memory."""
        pace = np.empty((len(self.batch), len(self.groups)))
        for profile, rows in self.batch.kinds:
            pace[rows] = profile.pace(self.batch.frequency[rows, None], self.groups.frequency)
        return pace

    @cached_property
    def offset(self) -> FloatArray:
        """Unclipped theta with all memory local, (n, g)."""
        return np.zeros_like(self.pace) if self.theta == "printed" else self.pace - 1

    @cached_property
    def least(self) -> FloatArray:
        """Minimum x of equation (6) that keeps theta <= Delta, (n, g); NaN if no x does."""
        allowed = (self.batch.tolerance[:, None] - self.offset) / self.pace
        least = np.empty_like(allowed)
        for profile, rows in self.batch.kinds:
            least[rows] = np.maximum(1 - profile.largest_remote(allowed[rows]), max(self.least_local, 1 - profile.remote[-1]))
        return least

    @cached_property
    def harmless(self) -> FloatArray:
        """Fraction of remote memory below which theta no longer decreases, (n, g); above 0 only if theta is clipped."""
        share = np.zeros_like(self.pace)
        if self.clip:
            for profile, rows in self.batch.kinds:
                farthest = profile.largest_remote(-self.offset[rows] / self.pace[rows])
                share[rows] = np.nan_to_num(farthest, nan=0.0)
        return share

    def steps(self, w: int, g: int) -> list[tuple[float, float]]:
        """Return steps (MiB, theta saved per MiB) of local memory beyond the minimum, from the outermost piece of P^m inwards.

        Pieces of at most `LEAST_WIDTH` of the memory are left out.
        """
        profile, size, pace = self.batch.profile[w], float(self.batch.memory[w]), float(self.pace[w, g])
        local_steps = []
        for k in range(len(profile.slopes) - 1, -1, -1):
            low, high = (
                max(profile.remote[k], float(self.harmless[w, g])),
                min(profile.remote[k + 1], 1 - float(self.least[w, g])),
            )
            if high - low > LEAST_WIDTH:
                local_steps.append(((high - low) * size, float(profile.slopes[k]) * pace / size))
        return local_steps

    @cached_property
    def allowed(self) -> BoolArray:
        """Mask of the groups on whose empty modules each workload may run alone, (n, g)."""
        groups = self.groups
        fits = (self.batch.cores[:, None] <= groups.free_cores) & ~np.isnan(self.least)
        room: BoolArray = np.nan_to_num(self.least, nan=2.0) * self.batch.memory[:, None] <= groups.memory * (1 + 1e-12)
        return fits & room

    def slowdown(self, rows: IntArray, groups: IntArray, local: FloatArray) -> FloatArray:
        """Return theta of workloads on modules of groups with given fractions of local memory; all arrays are (k,)."""
        theta: FloatArray = self.pace[rows, groups] * self.batch.curve(rows, 1 - local) + self.offset[rows, groups]
        return np.maximum(theta, 0.0) if self.clip else theta


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of identical modules, with their counts. Placements on different modules of a group are interchangeable.

    Attributes
    ----------
    of_module : (m,) group of each module, numbered by first appearance
    count : (g,) int64, modules in the group
    cores, frequency, memory, static, dynamic, free_cores, on : (g,) as in `Modules`; static is 0 for modules that are on
    """

    of_module: IntArray
    count: IntArray
    cores: IntArray
    frequency: FloatArray
    memory: FloatArray
    static: FloatArray
    dynamic: FloatArray
    free_cores: IntArray
    on: BoolArray

    @classmethod
    def of(cls, modules: Modules) -> Groups:
        """Group modules by type and residual state."""
        static = np.where(modules.on, 0.0, modules.static)
        table = np.stack(
            [
                modules.cores.astype(np.float64),
                modules.frequency,
                modules.memory,
                static,
                modules.dynamic,
                modules.free_cores.astype(np.float64),
                modules.on.astype(np.float64),
            ],
            axis=1,
        )
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        rows = first[order]
        of_module = rank[inverse.reshape(-1)].astype(np.int64)
        return cls(
            of_module,
            np.bincount(of_module, minlength=len(rows)).astype(np.int64),
            modules.cores[rows],
            modules.frequency[rows],
            modules.memory[rows],
            static[rows],
            modules.dynamic[rows],
            modules.free_cores[rows],
            modules.on[rows],
        )

    def __len__(self) -> int:
        return len(self.count)

    def members(self, group: int) -> IntArray:
        """Return the modules of a group, (count,), ascending."""
        return np.flatnonzero(self.of_module == group)

    def ids(self) -> Iterator[tuple[int, IntArray]]:
        """Iterate over (group, its modules)."""
        return ((g, self.members(g)) for g in range(len(self)))
