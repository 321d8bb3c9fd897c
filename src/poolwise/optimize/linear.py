"""Linear and mixed-integer programs that grow while they are solved: one model, never rebuilt.

Solved by OR-Tools MathOpt: GLOP for linear programs, warm from the last basis; HiGHS or SCIP for integers.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from ortools.math_opt.python import mathopt  # type: ignore[import-untyped]  # OR-Tools ships no types here

from poolwise.arrays import FloatArray, IntArray

Status = Literal["optimal", "feasible", "infeasible", "unbounded", "limit", "failed"]
"""feasible: a solution, not proven optimal when time ran out; limit: time ran out without one."""
Solver = Literal["glop", "highs", "scip"]

_SOLVERS = {"glop": mathopt.SolverType.GLOP, "highs": mathopt.SolverType.HIGHS, "scip": mathopt.SolverType.GSCIP}
_REASONS: dict[mathopt.TerminationReason, Status] = {
    mathopt.TerminationReason.OPTIMAL: "optimal",
    mathopt.TerminationReason.FEASIBLE: "feasible",
    mathopt.TerminationReason.INFEASIBLE: "infeasible",
    mathopt.TerminationReason.INFEASIBLE_OR_UNBOUNDED: "infeasible",
    mathopt.TerminationReason.UNBOUNDED: "unbounded",
    mathopt.TerminationReason.NO_SOLUTION_FOUND: "limit",
}


@dataclass(frozen=True, eq=False)
class Answer:
    """What the solver said.

    Attributes
    ----------
    status : see `Status`; nothing else of an answer that is neither optimal nor feasible means anything
    objective : value of the solution, NaN without one
    bound : proven lower bound on every solution, -inf without one
    values : (n_column,) the solution, NaN without one
    duals : (n_row,) change of the objective per unit of a row's bound, NaN for programs with integers
    detail : the solver's own words
    """

    status: Status
    objective: float
    bound: float
    values: FloatArray
    duals: FloatArray
    detail: str = ""


class LinearProgram:
    """Minimise cost @ v subject to low <= A v <= high and bounds on v; columns and rows may be added, bounds moved.

    Parameters
    ----------
    solver
        "glop" for linear programs; "highs" or "scip" where columns are integer.
    """

    def __init__(self, solver: Solver = "glop") -> None:
        self._model = mathopt.Model()
        self._columns: list[mathopt.Variable] = []
        self._rows: list[mathopt.LinearConstraint] = []
        self._kind = solver
        self._solver: mathopt.IncrementalSolver | None = None

    @property
    def n_column(self) -> int:
        """Number of columns."""
        return len(self._columns)

    @property
    def n_row(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def add_row(
        self, low: float, high: float, columns: Sequence[int] | IntArray = (), values: Sequence[float] | FloatArray = ()
    ) -> int:
        """Add a row over existing columns; returns its number."""
        row = self._model.add_linear_constraint(lb=low, ub=high)
        for column, value in zip(columns, values, strict=True):
            row.set_coefficient(self._columns[int(column)], float(value))
        self._rows.append(row)
        return len(self._rows) - 1

    def add_column(
        self,
        cost: float,
        low: float,
        high: float,
        rows: Sequence[int] | IntArray = (),
        values: Sequence[float] | FloatArray = (),
        *,
        integer: bool = False,
    ) -> int:
        """Add a column with its coefficients in existing rows; returns its number."""
        column = self._model.add_variable(lb=low, ub=high, is_integer=integer)
        if cost:
            self._model.objective.set_linear_coefficient(column, cost)
        for row, value in zip(rows, values, strict=True):
            self._rows[int(row)].set_coefficient(column, float(value))
        self._columns.append(column)
        return len(self._columns) - 1

    def set_bounds(self, column: int, low: float, high: float) -> None:
        """Move a column's bounds."""
        self._columns[column].lower_bound, self._columns[column].upper_bound = low, high

    def set_cost(self, column: int, cost: float) -> None:
        """Change a column's cost."""
        self._model.objective.set_linear_coefficient(self._columns[column], cost)

    def set_limit(self, row: int, low: float, high: float) -> None:
        """Move a row's bounds."""
        self._rows[row].lower_bound, self._rows[row].upper_bound = low, high

    def set_coefficient(self, row: int, column: int, value: float) -> None:
        """Change one coefficient."""
        self._rows[row].set_coefficient(self._columns[column], value)

    def solve(
        self,
        *,
        seconds: float | None = None,
        gap: float | None = None,
        threads: int | None = None,
        hint: FloatArray | None = None,
    ) -> Answer:
        """Solve as it stands, warm from the last answer where the solver can.

        Parameters
        ----------
        seconds
            Time limit.
        gap
            Relative gap at which an integer program counts as solved.
        threads
            Threads of SCIP; the others decide for themselves.
        hint
            (n_column,) a solution to start from.
        """
        if self._solver is None:
            self._solver = mathopt.IncrementalSolver(self._model, _SOLVERS[self._kind])
        parameters = mathopt.SolveParameters(
            time_limit=None if seconds is None else datetime.timedelta(seconds=max(seconds, 1e-3)),
            relative_gap_tolerance=gap,
            threads=threads if self._kind == "scip" else None,
        )
        some = mathopt.SparseVectorFilter(skip_zero_values=True)  # reading zeros back takes longer than finding them
        none: mathopt.SparseVectorFilter[mathopt.Variable] = mathopt.SparseVectorFilter(filtered_items=[])
        guide = mathopt.ModelSolveParameters(variable_values_filter=some, dual_values_filter=some, reduced_costs_filter=none)
        if hint is not None:
            values = dict(zip(self._columns, hint.tolist(), strict=True))
            guide.solution_hints.append(mathopt.SolutionHint(variable_values=values))
        try:
            answer = self._read(self._solver.solve(params=parameters, model_params=guide))
            if answer.status != "infeasible" or self._kind != "glop":
                return answer
            parameters.presolve = mathopt.Emphasis.OFF  # GLOP's presolve was seen to call a feasible program infeasible
            self._solver = mathopt.IncrementalSolver(self._model, _SOLVERS[self._kind])
        except Exception:  # MathOpt raises what it meets, of several kinds: a warm start that went astray deserves a cold one
            self._solver = mathopt.IncrementalSolver(self._model, _SOLVERS[self._kind])
        try:
            return self._read(self._solver.solve(params=parameters, model_params=guide))
        except Exception as problem:
            self._solver = None
            nothing = np.full(self.n_column, np.nan), np.full(self.n_row, np.nan)
            return Answer("failed", float("nan"), float("-inf"), *nothing, detail=str(problem) or type(problem).__name__)

    def _read(self, result: mathopt.SolveResult) -> Answer:
        status = _REASONS.get(result.termination.reason, "failed")
        values, duals = np.full(self.n_column, np.nan), np.full(self.n_row, np.nan)
        objective = float("nan")
        if status in ("optimal", "feasible") and result.has_primal_feasible_solution():
            values, objective = np.zeros(self.n_column), result.objective_value()
            for column, value in result.variable_values().items():
                values[column.id] = value
            if self._kind == "glop" and result.has_dual_feasible_solution():
                duals = np.zeros(self.n_row)
                for row, dual in result.dual_values().items():
                    duals[row.id] = dual
        bound = result.best_objective_bound() if status in ("optimal", "feasible", "limit") else float("-inf")
        return Answer(status, objective, bound, values, duals, result.termination.detail)
