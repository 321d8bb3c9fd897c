"""Placement of a batch of workloads on CPU modules."""

from __future__ import annotations

import time
from dataclasses import dataclass
from html import escape
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from poolwise import catalog
from poolwise.batch.methods.method import Limit, find_method
from poolwise.batch.problem.assignment import Solution
from poolwise.batch.problem.check import CheckedAssignment, check_assignment
from poolwise.errors import InputError
from poolwise.files.batch import read_batch
from poolwise.presentation.answer import Answer, Certainty, DecisionCard
from poolwise.presentation.table import Table
from poolwise.quantities import SECOND, format_memory, parse
from poolwise.short_repr import fit_repr


@dataclass(frozen=True, eq=False, repr=False)
class BatchPlacement:
    """A placed batch; `place` returns it.

    Attributes
    ----------
    solution : the assignment, its objective, and the bound that was proven
    checked : objective and violations that an independent checker found
    method : name of the method
    wall_s : seconds that the method took
    file : the batch file

    Examples
    --------
    >>> import poolwise
    >>> placed = poolwise.place("batch-150x1200", method="first-fit")
    >>> placed.checked.valid, placed.solution.dropped
    (True, ())
    """

    solution: Solution
    checked: CheckedAssignment
    method: str
    wall_s: float
    file: Path

    def answer(self) -> Answer:
        """Return the placement as an `Answer`; its status is infeasible if workloads were dropped."""
        solution, content, batch = self.solution, self.to_dict(), self.solution.problem.batch
        headline = f"All {len(batch):,} workloads are placed."
        if solution.dropped:
            placed = f"placed {len(batch) - len(solution.dropped)} of {len(batch)}"
            headline = f"{solution.unmet}\n  {placed}; left out: {', '.join(content['dropped'])}"
        gap = "" if content["gap"] is None else f"gap {100 * content['gap']:.2f} %"
        bound = (solution.bound, content["objective"])
        violations = "; ".join(f"({k}) violated {n} x" for k, n in self.checked.count().items())
        decision = DecisionCard(
            choice=[["objective", f"{content['objective']:.6g}"]],
            certainty=None if content["bound"] is None else Certainty("bound", interval=bound, remark=gap),
            certainty_of=f"proven bound of {solution.bound_of}",
            effects=[
                ["energy", f"{content['energy']:.6g} on {content['modules_on']} modules"],
                [f"sum of slowdowns (theta {solution.problem.theta})", f"{content['slowdown']:.6g}"],
                ["independent checker", "every constraint holds" if self.checked.valid else violations],
                ["placed in", f"{self.wall_s:.3g} s"],
            ],
        )
        rows = [
            [row["name"], row["module"], format_memory(row["local_mib"]), format_memory(row["remote_mib"]),
             f"{row['slowdown']:.4f}", f"{row['tolerance']:.4f}"]
            for row in content["workloads"]
        ]  # fmt: skip
        return Answer(
            title=f"Placement of {self.file.stem} by {self.method}",
            headline=headline,
            status="infeasible" if solution.dropped else "decided",
            decision=decision,
            notes=solution.notes,
            head=[Table("Workloads", ["workload", "module", "local", "remote", "slowdown", "accepted"], rows)],
            candidates=self.frame(),
            content=content,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `poolwise place --json` prints it."""
        solution, problem = self.solution, self.solution.problem
        placed = solution.assignment.placed
        return {
            "method": self.method,
            "status": solution.status,
            "problem": {"theta": problem.theta, "eta": problem.eta, "clip": problem.clip, "normalise": problem.normalise},
            "objective": solution.objective,
            "bound": solution.bound if isfinite(solution.bound) else None,
            "bound_of": solution.bound_of,
            "gap": solution.gap if isfinite(solution.gap) else None,
            "energy": solution.energy,
            "slowdown": float(solution.theta[placed].sum()),
            "modules_on": len(set(solution.assignment.module[placed].tolist())),
            "workloads": self._rows(),
            "dropped": [problem.batch.name[w] for w in solution.dropped],
            "unmet": solution.unmet,
            "checker": {
                "valid": self.checked.valid,
                "objective": self.checked.objective,
                "violations": [str(violation) for violation in self.checked.violations],
            },
            "notes": list(solution.notes),
            "wall_s": self.wall_s,
        }

    def frame(self) -> pl.DataFrame:
        """Return one row per placed workload: module, local and remote memory (MiB), slowdown, tolerance, completion ratio."""
        return pl.DataFrame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        solution, problem = self.solution, self.solution.problem
        where, batch = solution.assignment, problem.batch
        return [
            {
                "name": batch.name[w],
                "module": problem.modules.name[int(where.module[w])],
                "local_mib": float(where.local[w] * batch.memory[w]),
                "remote_mib": float((1 - where.local[w]) * batch.memory[w]),
                "slowdown": float(solution.theta[w]),
                "tolerance": float(batch.tolerance[w]),
                "completion_ratio": float(solution.completion[w]),
            }
            for w in where.placed.tolist()
        ]

    def __repr__(self) -> str:
        solution = self.solution
        placed, total = len(solution.assignment.placed), len(solution.problem.batch)
        verdict = "valid" if self.checked.valid else f"{len(self.checked.violations):,} violations"
        text = f"BatchPlacement '{self.file.stem}' by {self.method}: {placed:,} of {total:,} workloads placed, {verdict}"
        return fit_repr(f"{text}\n  objective: {solution.objective:.6g}, energy: {solution.energy:.6g}")

    def _repr_html_(self) -> str:
        text = "<br>".join(escape(line) for line in repr(self).splitlines())
        return f"<p>{text}</p>{self.frame()._repr_html_()}"


def place(
    batch: str | Path,
    method: str = "place",
    *,
    time_limit: str | float = "1s",
    theta: str | None = None,
    eta: float | None = None,
    tolerance: float | None = None,
    seed: int | None = None,
) -> BatchPlacement:
    """Place a batch of workloads on CPU modules, using little energy without exceeding the accepted slowdowns.

    Parameters
    ----------
    batch
        BATCH.toml, or the name of a shipped batch ("batch-150x1200" or "catalog:batch-150x1200").
    method
        Name of a method (`poolwise list methods`), or "FILE.py:NAME".
    time_limit
        Time that the method may take: text such as "50ms", or seconds.
    theta
        Definition of slowdown in the objective, instead of the file's: "printed" or "relative".
    eta
        Weight of energy in the objective, in [0, 1], instead of the file's.
    tolerance
        Accepted slowdown of every workload, instead of the file's.
    seed
        Random seed of a drawn batch, instead of the file's.

    Returns
    -------
    BatchPlacement
        Workloads that could not be placed are in `solution.dropped`.

    Raises
    ------
    UnknownNameError
        No batch or method has this name.
    InputError
        The file or the time limit cannot be read.

    Examples
    --------
    >>> import poolwise
    >>> placed = poolwise.place("batch-150x1200", method="first-fit")
    >>> placed.frame().columns[:3]
    ['name', 'module', 'local_mib']
    """
    seconds = time_limit_s(time_limit)
    file = Path(batch)
    shipped = not file.suffix and not file.exists()
    path = catalog.find("batches", str(batch).removeprefix(catalog.PREFIX)) if shipped else catalog.resolve("batches", batch)
    problem = read_batch(path, seed=seed, eta=eta, theta=theta, tolerance=tolerance)
    chosen = find_method(method)
    if hasattr(chosen, "prepare"):
        chosen.prepare()  # compiling does not count towards the time limit
    begun = time.perf_counter()
    solution = chosen.solve(problem, Limit(seconds))
    wall = time.perf_counter() - begun
    checked = check_assignment(problem, solution.assignment, partial=bool(solution.dropped))
    return BatchPlacement(solution, checked, method, wall, path)


def time_limit_s(limit: str | float) -> float:
    """Return a time limit in seconds; raises InputError for text that is not a time, and unless the limit is above 0."""
    remedy = "write 50ms, 1s or 60s"
    try:
        seconds = parse(limit, "time") / SECOND if isinstance(limit, str) else float(limit)
    except ValueError as error:
        raise InputError(str(error), field="time-limit", remedy=remedy) from None
    if seconds <= 0:
        raise InputError("the time limit must be above 0", field="time-limit", remedy=remedy)
    return seconds
