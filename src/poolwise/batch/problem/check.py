"""Check of assignments for every constraint of Problem 1, from the data alone and without code of the methods.

Source: Sefati et al., IRoP, equations (4b) to (4l).
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.batch.problem.assignment import Assignment
from poolwise.batch.problem.definition import Problem
from poolwise.performance.profiles import Profile

SLACK = 1e-7
"""Relative tolerance for rounding: solvers work to 1e-7 or better."""


@dataclass(frozen=True)
class Violation:
    """A violated constraint: its equation number, its place, the amount and the limit."""

    constraint: str
    where: str
    amount: float
    limit: float

    def __str__(self) -> str:
        return f"({self.constraint}) {self.where}: {self.amount:.6g} against {self.limit:.6g}"


@dataclass(frozen=True)
class CheckedAssignment:
    """Result of the check; `objective` is computed independently by equation (4a)."""

    violations: tuple[Violation, ...]
    objective: float

    @property
    def valid(self) -> bool:
        """True if every constraint holds."""
        return not self.violations

    def count(self) -> dict[str, int]:
        """Return constraint -> number of violations."""
        counts: dict[str, int] = {}
        for violation in self.violations:
            counts[violation.constraint] = counts.get(violation.constraint, 0) + 1
        return counts


def check_assignment(problem: Problem, assignment: Assignment, *, partial: bool = False) -> CheckedAssignment:
    """Check an assignment; `partial` accepts workloads that were not placed (and were reported as dropped)."""
    violations: list[Violation] = []
    cores: dict[int, int] = {}
    memory: dict[int, float] = {}
    slowdown = energy = remote = 0.0
    batch, modules = problem.batch, problem.modules
    for w, name in enumerate(batch.name):
        c, x = int(assignment.module[w]), float(assignment.local[w])
        if not 0 <= c < len(modules):
            if c != -1 or not partial:
                violations.append(Violation("4b", f"workload {name} runs on no module", 0, 1))
            continue
        if not problem.least_local - SLACK <= x <= 1 + SLACK:
            violations.append(Violation("4h" if x < 1 else "4l", f"local share of workload {name}", x, problem.least_local))
        share = min(max(1.0 - x, 0.0), 1.0)
        profile = batch.profile[w]
        if share > profile.remote[-1] + SLACK:
            violations.append(Violation("4h", f"workload {name} exceeds its profile", share, profile.remote[-1]))
        phi, frequency = float(batch.frequency[w]), float(modules.frequency[c])
        pace = 1 - profile.frequency_share + profile.frequency_share * phi / frequency
        theta = _curve(profile, share) * pace
        if problem.theta == "relative":
            theta += pace - 1
        if problem.clip and theta < 0:
            theta = 0.0
        if theta > float(batch.tolerance[w]) + SLACK * max(1.0, pace):
            violations.append(Violation("4j", f"slowdown of workload {name}", theta, float(batch.tolerance[w])))
        cores[c] = cores.get(c, 0) + int(batch.cores[w])
        memory[c] = memory.get(c, 0.0) + x * float(batch.memory[w])
        remote += (1 - x) * float(batch.memory[w])
        slowdown += theta
        energy += float(modules.dynamic[c]) * int(batch.cores[w]) / int(modules.cores[c])
    for c in sorted(cores):
        if cores[c] > int(modules.free_cores[c]):
            violations.append(Violation("4c, 4e", f"cores of module {modules.name[c]}", cores[c], int(modules.free_cores[c])))
        if memory[c] > float(modules.memory[c]) * (1 + SLACK):
            violations.append(
                Violation("4d, 4f", f"local memory of module {modules.name[c]}", memory[c], float(modules.memory[c]))
            )
        energy += 0.0 if bool(modules.on[c]) else float(modules.static[c])
    if remote > problem.remote * (1 + SLACK) + SLACK:
        violations.append(Violation("4g", "remote memory", remote, problem.remote))
    weight_slowdown, weight_energy = problem.weights
    return CheckedAssignment(tuple(violations), weight_slowdown * slowdown + weight_energy * energy)


def _curve(profile: Profile, share: float) -> float:
    """Interpolate P^m between the knots, at a fraction of remote memory."""
    total, here = 0.0, 0.0
    for knot, low, high in zip(profile.remote[1:], profile.slowdown[:-1], profile.slowdown[1:], strict=True):
        if share <= knot or knot == profile.remote[-1]:
            return total + (high - low) * (share - here) / (knot - here)
        total, here = total + high - low, knot
    return total
