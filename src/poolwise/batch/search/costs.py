"""Arrays for the search: the requirements, costs and savings of each workload on each group of modules."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.batch.problem.definition import Problem
from poolwise.errors import InputError
from poolwise.kernels.batch.fill import FillCosts


def costs_of(problem: Problem, outside: float = 0.0) -> FillCosts:
    """Build the arrays. Groups become kinds of bins; pieces of P^m become steps, from the outermost inwards.

    `outside` is the price of a MiB of remote memory. Raises InputError if P^m is not convex, because filling local memory by
    descending gain would then not be optimal.
    """
    batch, groups = problem.batch, problem.groups
    for profile, _ in batch.kinds:
        if not profile.is_convex:
            raise InputError(
                f"profile '{profile.name}' is not convex, which place and its bound require",
                field="profile",
                remedy="fit a convex profile (poolwise profile fit), or use --method opt, irop or heep",
            )
    n, g, pieces = len(batch), len(groups), max((len(p.slopes) for p in batch.profile), default=1)
    slowdown, energy = problem.weights
    least = np.where(np.isnan(problem.least), 1.0, problem.least)
    farthest = 1 - least
    load = energy * groups.dynamic[None, :] * batch.cores[:, None] / groups.cores[None, :]
    base = load + slowdown * _theta(problem, farthest)
    near = problem.harmless
    width, density = np.zeros((n, g, pieces)), np.zeros((n, g, pieces))
    for profile, rows in batch.kinds:
        for j, slope in enumerate(profile.slopes.tolist()):
            inner, outer = np.maximum(profile.remote[j], near[rows]), np.minimum(profile.remote[j + 1], farthest[rows])
            step = len(profile.slopes) - 1 - j
            width[rows, :, step] = np.maximum(outer - inner, 0.0) * batch.memory[rows, None]
            density[rows, :, step] = slope * problem.pace[rows] / batch.memory[rows, None]
    rank, order = _ranks(density)  # by theta alone: even if only energy has weight, memory goes where it helps
    flat = np.arange(g)[:, None]
    return FillCosts(
        load=batch.cores.copy(),
        size=batch.memory.copy(),
        need=np.ascontiguousarray((least * batch.memory[:, None]).T),
        base=np.ascontiguousarray(base.T),
        allowed=np.ascontiguousarray(problem.allowed.T),
        rank=rank,
        width=np.ascontiguousarray(width.transpose(1, 0, 2).reshape(g, -1)[flat, order]),
        gain=slowdown * np.ascontiguousarray(density.transpose(1, 0, 2).reshape(g, -1)[flat, order]),
        owner=np.ascontiguousarray(order // pieces),
        available=groups.count.copy(),
        capacity=groups.free_cores.copy(),
        room=groups.memory.copy(),
        opening=energy * groups.static,
        outside=np.array([outside]),
    )


def part_of(costs: FillCosts, rows: IntArray, available: IntArray) -> FillCosts:
    """Return the costs of some workloads, (k,) rows, on `available` modules of each group, (g,)."""
    kinds, _, pieces = costs.rank.shape
    old = costs.rank[:, rows].reshape(kinds, -1)
    order, flat = np.argsort(old, axis=1, kind="stable"), np.arange(kinds)[:, None]
    rank = np.empty_like(old)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(old.shape[1]), old.shape), axis=1)
    by_rank = np.take_along_axis(old, order, axis=1)
    return costs._replace(
        load=costs.load[rows],
        size=costs.size[rows],
        need=np.ascontiguousarray(costs.need[:, rows]),
        base=np.ascontiguousarray(costs.base[:, rows]),
        allowed=np.ascontiguousarray(costs.allowed[:, rows]),
        rank=rank.reshape(kinds, len(rows), pieces),
        width=costs.width[flat, by_rank],
        gain=costs.gain[flat, by_rank],
        owner=np.ascontiguousarray(order // pieces),
        available=available,
    )


def _theta(problem: Problem, remote: FloatArray) -> FloatArray:
    """Return theta at fractions of remote memory, both (n, g)."""
    theta: FloatArray = problem.pace * problem.batch.curve(np.arange(len(remote)), remote) + problem.offset
    return np.maximum(theta, 0.0) if problem.clip else theta


def _ranks(density: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the ranks of each item's steps within the group, (g, n, p), ascending, and the step of each rank, (g, n * p)."""
    n, g, p = density.shape
    flat = density.transpose(1, 0, 2).reshape(g, n * p)
    order = np.argsort(-flat, axis=1, kind="stable")
    rank = np.empty((g, n * p), dtype=np.int64)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(n * p), (g, n * p)), axis=1)
    return np.sort(rank.reshape(g, n, p), axis=2), order
