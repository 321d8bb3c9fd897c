"""Incremental linear and mixed-integer programs: one model that grows between solves and is never rebuilt.

OR-Tools MathOpt solves them: GLOP solves linear programs by the dual simplex method from the last basis, or HiGHS by an
interior point method; HiGHS and SCIP solve integer programs.
"""

from __future__ import annotations

import ctypes
import datetime
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal

import numpy as np
from ortools.math_opt import callback_pb2, parameters_pb2, result_pb2, solution_pb2  # type: ignore[import-untyped]
from ortools.math_opt.core.python import solver as core  # type: ignore[import-untyped]  # OR-Tools ships no types here
from ortools.math_opt.python import mathopt  # type: ignore[import-untyped]

from poolwise.arrays import FloatArray, IntArray

LinearStatus = Literal["optimal", "feasible", "infeasible", "unbounded", "limit", "failed"]
"""feasible: a solution that was not proven optimal in time; limit: no solution in time."""
LinearSolver = Literal["glop", "interior_point", "highs", "scip"]

_SOLVERS = {
    "glop": mathopt.SolverType.GLOP,
    "interior_point": mathopt.SolverType.HIGHS,
    "highs": mathopt.SolverType.HIGHS,
    "scip": mathopt.SolverType.GSCIP,
}
_REASONS: dict[mathopt.TerminationReason, LinearStatus] = {
    mathopt.TerminationReason.OPTIMAL: "optimal",
    mathopt.TerminationReason.FEASIBLE: "feasible",
    mathopt.TerminationReason.INFEASIBLE: "infeasible",
    mathopt.TerminationReason.INFEASIBLE_OR_UNBOUNDED: "infeasible",
    mathopt.TerminationReason.UNBOUNDED: "unbounded",
    mathopt.TerminationReason.NO_SOLUTION_FOUND: "limit",
}

BARRIER_ITERATIONS = 500
"""Iterations after which the interior point method counts as not converging: it needs tens of iterations, or never ends."""

Basis = tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]
"""(columns, their statuses), (rows, their statuses), as MathOpt numbers them."""


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Result of a solve; the fields after the status are only valid if it is "optimal" or "feasible".

    `bound` is a proven lower bound on every solution, -inf without one. `values` (n_column,) and `duals` (n_row,), the change
    of the objective per unit of a row's bound, are NaN without a solution; the duals are also NaN for integer programs.
    `detail` is a message of the solver.
    """

    status: LinearStatus
    objective: float
    bound: float
    values: FloatArray
    duals: FloatArray
    detail: str = ""


class LinearProgram:
    """Minimize cost @ v subject to low <= A v <= high and bounds on v. Columns and rows may be added, and bounds changed.

    The solver is "glop" or "interior_point" for linear programs, and "highs" or "scip" for integer programs. The interior point
    method (HiGHS) has neither a warm start nor presolve. It crosses over to a vertex only if its solution would otherwise miss
    the tolerances, so among several optima it usually returns one inside the optimal face. Programs on which it does not
    converge are solved by the dual simplex method of HiGHS.
    """

    def __init__(self, solver: LinearSolver = "glop") -> None:
        self._model = mathopt.Model()
        self._columns: list[mathopt.Variable] = []
        self._rows: list[mathopt.LinearConstraint] = []
        self._kind = solver
        self._session: Session | None = None
        self._basis: Basis | None = None
        self._leaving: list[int] = []
        self._alive: list[bool] = []

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
        """Add a row over existing columns; return its number."""
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
        """Add a column with its coefficients in existing rows; return its number."""
        column = self._model.add_variable(lb=low, ub=high, is_integer=integer)
        if cost:
            self._model.objective.set_linear_coefficient(column, cost)
        for row, value in zip(rows, values, strict=True):
            self._rows[int(row)].set_coefficient(column, float(value))
        self._columns.append(column)
        self._alive.append(True)
        return len(self._columns) - 1

    def remove_column(self, column: int) -> None:
        """Remove a column. It keeps its number, and its value is 0 from then on."""
        self.set_bounds(column, 0, 0)
        self._leaving.append(column)

    def set_bounds(self, column: int, low: float, high: float) -> None:
        """Change a column's bounds."""
        self._columns[column].lower_bound, self._columns[column].upper_bound = low, high

    def set_cost(self, column: int, cost: float) -> None:
        """Change a column's cost."""
        self._model.objective.set_linear_coefficient(self._columns[column], cost)

    def set_limit(self, row: int, low: float, high: float) -> None:
        """Change a row's bounds."""
        self._rows[row].lower_bound, self._rows[row].upper_bound = low, high

    def set_coefficient(self, row: int, column: int, value: float) -> None:
        """Change one coefficient."""
        self._rows[row].set_coefficient(self._columns[column], value)

    def solve(
        self,
        *,
        seconds: float | None = None,
        nodes: int | None = None,
        gap: float | None = None,
        feasibility: float | None = None,
        threads: int | None = None,
        hint: FloatArray | None = None,
    ) -> LinearSolution:
        """Solve the current problem, starting from the last solution if the solver supports warm starts.

        `nodes` limits the nodes of branch and bound, the root included: unlike `seconds`, it ends the search at the same
        solution on every machine. `gap` is the relative gap at which an integer program counts as solved, and `feasibility` the
        largest violation of a row, a bound or integrality in its solutions (1e-6 by default). `threads` applies to SCIP only
        (the other solvers choose their own number), and `hint` is a solution (n_column,) to start from.
        """
        parameters = mathopt.SolveParameters(
            time_limit=None if seconds is None else datetime.timedelta(seconds=max(seconds, 1e-3)),
            node_limit=nodes,
            relative_gap_tolerance=gap,
            threads=threads if self._kind == "scip" else None,
        )
        if feasibility is not None:
            parameters.gscip.real_params["numerics/feastol"] = feasibility
            for option in ("primal_feasibility_tolerance", "mip_feasibility_tolerance"):
                parameters.highs.double_options[option] = feasibility
        if self._kind == "interior_point":
            parameters.lp_algorithm, parameters.presolve = mathopt.LPAlgorithm.BARRIER, mathopt.Emphasis.OFF
            parameters.highs.string_options["run_crossover"] = "off"
            parameters.highs.int_options["ipm_iteration_limit"] = BARRIER_ITERATIONS
        warm = self._kind == "glop" and self._basis is not None
        if warm:
            parameters.lp_algorithm, parameters.presolve = mathopt.LPAlgorithm.DUAL_SIMPLEX, mathopt.Emphasis.OFF
        some = mathopt.SparseVectorFilter(skip_zero_values=True)  # reading back zeros takes longer than restoring them
        none: mathopt.SparseVectorFilter[mathopt.Variable] = mathopt.SparseVectorFilter(filtered_items=[])
        guide = mathopt.ModelSolveParameters(variable_values_filter=some, dual_values_filter=some, reduced_costs_filter=none)
        if hint is not None:
            values = dict(zip(self._columns, hint.tolist(), strict=True))
            guide.solution_hints.append(mathopt.SolutionHint(variable_values=values))
        try:
            self._session = self._session or Session(self._model, _SOLVERS[self._kind])
            result = self._session.solve(parameters, guide, self._start() if warm else None)
            answer = self._read(result)
            if result.termination.limit == result_pb2.LIMIT_ITERATION and self._kind == "interior_point":
                parameters.lp_algorithm = mathopt.LPAlgorithm.DUAL_SIMPLEX
            elif answer.status in ("infeasible", "failed") and self._kind == "glop":
                # after GLOP's presolve, programs with an optimum have ended as infeasible or as imprecise
                parameters.presolve = mathopt.Emphasis.OFF
            else:
                return answer
        except Exception:  # MathOpt raises exceptions of several kinds; a failed warm start is retried cold
            parameters.highs.string_options.pop("run_crossover", None)  # without crossover, it may miss the tolerances
        try:
            self._session = Session(self._model, _SOLVERS[self._kind])
            return self._read(self._session.solve(parameters, guide))
        except Exception as problem:
            self._session = None
            nothing = np.full(self.n_column, np.nan), np.full(self.n_row, np.nan)
            return LinearSolution(
                "failed", float("nan"), float("-inf"), *nothing, detail=str(problem) or type(problem).__name__
            )

    def _start(self) -> solution_pb2.BasisProto:
        """Build the initial basis: the last one, with new columns at their lower bounds and new rows slack.

        Removed columns are deleted once they have left the basis; deleting a basic column would invalidate it.
        """
        assert self._basis is not None
        column = np.full(self.n_column, solution_pb2.BASIS_STATUS_AT_LOWER_BOUND)
        row = np.full(self.n_row, solution_pb2.BASIS_STATUS_BASIC)
        (columns, status), (rows, slack) = self._basis
        column[columns], row[rows] = status, slack
        basic = column == solution_pb2.BASIS_STATUS_BASIC
        for k in self._leaving:
            if not basic[k]:
                self._model.delete_variable(self._columns[k])
                self._alive[k] = False
        self._leaving = [k for k in self._leaving if basic[k]]
        alive = np.flatnonzero(self._alive)
        start = solution_pb2.BasisProto()
        start.variable_status.ids.extend(alive.tolist())
        start.variable_status.values.extend(column[alive].tolist())
        start.constraint_status.ids.extend(range(self.n_row))
        start.constraint_status.values.extend(row.tolist())
        return start

    def _read(self, result: result_pb2.SolveResultProto) -> LinearSolution:
        status = _REASONS.get(mathopt.TerminationReason(result.termination.reason), "failed")
        values, duals = np.full(self.n_column, np.nan), np.full(self.n_row, np.nan)
        objective = float("nan")
        if status in ("optimal", "feasible") and result.solutions:
            primal, dual = result.solutions[0].primal_solution, result.solutions[0].dual_solution
            values, objective = np.zeros(self.n_column), primal.objective_value
            values[np.array(primal.variable_values.ids, dtype=np.int64)] = primal.variable_values.values
            basis = result.solutions[0].basis
            if len(basis.variable_status.ids):
                parts = basis.variable_status, basis.constraint_status
                of_columns, of_rows = ((np.array(part.ids), np.array(part.values)) for part in parts)
                self._basis = of_columns, of_rows
            if self._kind == "glop" and dual.feasibility_status == solution_pb2.SOLUTION_STATUS_FEASIBLE:
                duals = np.zeros(self.n_row)
                duals[np.array(dual.dual_values.ids, dtype=np.int64)] = dual.dual_values.values
        bound = float("-inf")
        if status in ("optimal", "feasible", "limit"):
            bound = result.termination.objective_bounds.dual_bound
        return LinearSolution(status, objective, bound, values, duals, result.termination.detail)


class Session:
    """A solver that keeps its state from one solve of a model to the next.

    `mathopt.IncrementalSolver` does this too, but converts every solution and basis to Python objects, column by column, which
    took a fifth to a third of the time of rounding. This class reads only numbers.
    """

    def __init__(self, model: mathopt.Model, kind: mathopt.SolverType) -> None:
        self._model, self._kind = model, kind
        self._changes = model.add_update_tracker()
        self._solver = self._create()

    def _create(self) -> core.Solver:
        return core.new(self._kind.value, self._model.export_model(), parameters_pb2.SolverInitializerProto())

    def solve(
        self,
        parameters: mathopt.SolveParameters,
        guide: mathopt.ModelSolveParameters,
        start: solution_pb2.BasisProto | None = None,
    ) -> result_pb2.SolveResultProto:
        """Update the solver with the changes since the last solve, and solve. Raises whatever MathOpt raises."""
        update = self._changes.export_update()
        if update is not None:
            if not self._solver.update(update):
                self._solver = self._create()
            self._changes.advance_checkpoint()
        nothing = callback_pb2.CallbackRegistrationProto()
        request = guide.to_proto()
        if start is not None:
            request.initial_basis.CopyFrom(start)
        with _silence() if self._kind == mathopt.SolverType.HIGHS else nullcontext():
            return self._solver.solve(parameters.to_proto(), request, None, nothing, None, None)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep the library's output off our standard output, which may be JSON; no parameter suppresses the last line of HiGHS."""
    if os.name != "posix":
        yield
        return
    sys.stdout.flush()
    ours, devnull = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # C buffers its output: flush it before our output is restored
        os.dup2(ours, 1)
        os.close(ours)
        os.close(devnull)
