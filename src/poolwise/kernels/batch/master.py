"""Restricted master problem of column generation over the contents of bins, solved by the revised simplex method.

Each of the first rows requires that one item be covered once. One row per kind of bin then limits the number of bins, and the
last row limits the size beyond the room. Columns are stored where pricing writes them: passing them to GLOP with warm starts
and reading its results took five to nine times as long (`benchmarks/NOTEBOOK.md`). No proof depends on its numbers: the bound
of column generation holds for any duals.
Source: Dantzig's rule on a dense inverse; right-hand sides are perturbed slightly,
which prevents cycling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.kernels.batch.fill import FillCosts, Totals, cost
from poolwise.kernels.batch.price import BestSets, price_out
from poolwise.kernels.batch.search import alone
from poolwise.kernels.jit import entry, kernel, step

PERTURBATION = 1e-7
"""Largest perturbation of a right-hand side."""
TOLERANCE = 1e-9
"""Magnitude below which reduced costs and pivots count as 0."""
DRIFT = 1e-8
"""Residual of a row above which the inverse is recomputed."""
DEAR = 1.5
"""Default cost of leaving an item uncovered, relative to the cost of a bin of its own; see `Master.dear`."""
LEAST = 1e-3
"""Least cost of leaving an item uncovered."""
LOOK = 5
"""Operations counted per item examined in pricing."""
PIVOTS = 20_000
"""Maximum number of pivots per solution; the result is used even if it is not optimal, since the bound holds for any duals."""


class Master(NamedTuple):
    """Columns and a basis: m rows, space for k columns, r for their items."""

    n: int  # items; rows from n on are those of the kinds, the last that of the size beyond the room
    first: IntArray  # (k + 1,) position in `items` of the first item of a column
    items: IntArray  # (r,)
    kind: IntArray  # (k,) kind of bin
    cost: FloatArray  # (k,) cost of the bin
    charge: FloatArray  # (k,) the cost that the program uses for it
    far: FloatArray  # (k,) size beyond the room, in units of `unit`
    used: IntArray  # (1,) number of columns
    limit: FloatArray  # (m,) right-hand sides
    dear: FloatArray  # (m,) cost of the unit column of a row: an uncovered item, 0 for rows that may have slack
    inverse: FloatArray  # (m, m) of the basis, transposed
    basis: IntArray  # (m,) column, or -1 - row for a unit column
    # (m,) primal and dual values of the basis
    level: FloatArray
    dual: FloatArray
    spent: IntArray  # (1,) operations so far, about a nanosecond each
    unit: FloatArray  # (1,)
    # scratch
    way: FloatArray
    left: FloatArray
    steps: IntArray
    wanted: IntArray


def empty_master(c: FillCosts, outside: float, columns: int, entries: int) -> Master:
    """Return a master without columns, with space for `columns`; no item is covered. `outside` limits the size beyond room."""
    n, kinds = len(c.load), len(c.available)
    m = n + kinds + 1
    unit = max(1.0, float(c.room[np.isfinite(c.room)].max()))
    perturbed = 1 + PERTURBATION * (np.arange(n) * 7919 % 1009) / 1009
    limit = np.concatenate([perturbed, c.available.astype(np.float64), [outside / unit]])
    dear = np.zeros(m)
    uncovered_costs(c, dear)
    return Master(
        n, _whole(columns + 1), _whole(entries), _whole(columns), np.zeros(columns), np.zeros(columns), np.zeros(columns),
        _whole(1), limit, dear, np.eye(m), -1 - np.arange(m), limit.copy(), dear.copy(), _whole(1), np.array([unit]),
        np.zeros(m), np.zeros(m), _whole(n * c.rank.shape[2]), _whole(m),
    )  # fmt: skip


def _whole(size: int) -> IntArray:
    return np.zeros(size, dtype=np.int64)


@entry
def uncovered_costs(c: FillCosts, dear: FloatArray) -> None:
    """Write the cost of leaving each item uncovered to the beginning of `dear`."""
    for w in range(len(c.load)):
        least = np.inf
        for g in range(len(c.available)):
            if c.allowed[g, w]:
                least = min(least, abs(alone(c, g, w)))
        dear[w] = max(DEAR * least, LEAST) if least < np.inf else 1.0


def enlarged(m: Master) -> Master:
    """Return the same master with space for twice as many columns."""
    items, kind, cost, charge, far = (np.concatenate([part, part]) for part in (m.items, m.kind, m.cost, m.charge, m.far))
    first = np.concatenate([m.first, m.first[1:]])
    return m._replace(first=first, items=items, kind=kind, cost=cost, charge=charge, far=far)


@entry
def add(c: FillCosts, m: Master, g: int, items: IntArray) -> int:
    """Add a column, with the room of the bin allocated optimally to its items; return the column's number."""
    n, p, k = len(items), c.rank.shape[2], m.used[0]
    steps, n_step = m.steps, 0
    need, base, size, at = 0.0, 0.0, 0.0, m.first[k]
    for w in items:
        m.items[at] = w
        at += 1
        need, base, size = need + c.need[g, w], base + c.base[g, w], size + c.size[w]
        for j in range(p):
            place = n_step
            while place > 0 and steps[place - 1] > c.rank[g, w, j]:
                steps[place] = steps[place - 1]
                place -= 1
            steps[place] = c.rank[g, w, j]
            n_step += 1
    m.first[k + 1] = at
    m.kind[k] = g
    over = max(0.0, size - c.room[g])
    m.cost[k] = cost(c, g, Totals(n, need, base, size), steps, n_step, -1, -1) - c.outside[0] * over
    m.charge[k] = m.cost[k]
    m.far[k] = over / m.unit[0]
    m.used[0] = k + 1
    return int(k)


@step
def reduced(m: Master, k: int) -> float:
    """Return the reduced cost of a column: its charge minus the duals of its rows."""
    value: float = m.charge[k] - m.dual[m.n + m.kind[k]] - m.far[k] * m.dual[len(m.dual) - 1]
    for at in range(m.first[k], m.first[k + 1]):
        value -= m.dual[m.items[at]]
    return value


@entry
def optimize(m: Master) -> int:
    """Pivot from the current basis to an optimal one; return the number of pivots."""
    rows, way, done = len(m.level), m.way, 0
    _refresh_solution(m)
    while done < PIVOTS:
        enter, least = 0, -TOLERANCE
        improves = False
        for k in range(m.used[0]):
            value = reduced(m, k)
            if value < least:
                enter, least, improves = k, value, True
        for i in range(rows):
            if m.dear[i] - m.dual[i] < least:
                enter, least, improves = -1 - i, m.dear[i] - m.dual[i], True
        if not improves:
            break
        _direction(m, enter, way)
        leave, ratio = -1, np.inf
        for i in range(rows):
            if way[i] > TOLERANCE:
                here = max(m.level[i], 0.0) / way[i]
                if here < ratio or (here == ratio and way[i] > way[leave]):
                    leave, ratio = i, here
        if leave < 0:
            break
        for i in range(rows):
            m.level[i] -= ratio * way[i]
        m.level[leave] = ratio
        worth = least / way[leave]
        for j in range(rows):
            m.dual[j] += worth * m.inverse[j, leave]
        _pivot(m, enter, leave, way)
        done += 1
    m.spent[0] += (done + 3) * (rows * rows // 6 + m.first[m.used[0]])
    return done


@step
def _direction(m: Master, enter: int, way: FloatArray) -> None:
    """Write the inverse times a column to `way` (m,)."""
    rows = len(way)
    if enter < 0:
        for i in range(rows):
            way[i] = m.inverse[-1 - enter, i]
        return
    for i in range(rows):
        way[i] = m.inverse[m.n + m.kind[enter], i] + m.far[enter] * m.inverse[rows - 1, i]
    for at in range(m.first[enter], m.first[enter + 1]):
        w = m.items[at]
        for i in range(rows):
            way[i] += m.inverse[w, i]


@step
def _pivot(m: Master, enter: int, leave: int, way: FloatArray) -> None:
    """Let a column enter the basis in place of the column of a row."""
    rows = len(way)
    for j in range(rows):
        a = m.inverse[j, leave]
        if a != 0.0:
            a /= way[leave]
            for i in range(rows):
                m.inverse[j, i] -= a * way[i]
            m.inverse[j, leave] = a
    m.basis[leave] = enter


@step
def _refresh_solution(m: Master) -> None:
    """Recompute primal and dual values from the inverse, and the inverse from the basis if it has drifted."""
    rows, left, error, most = len(m.level), m.left, 0.0, 1.0
    _solve(m)
    for i in range(rows):
        left[i] = m.limit[i]
        most = max(most, abs(m.limit[i]))
    for i in range(rows):
        k = m.basis[i]
        if k < 0:
            left[-1 - k] -= m.level[i]
            continue
        left[m.n + m.kind[k]] -= m.level[i]
        left[rows - 1] -= m.far[k] * m.level[i]
        for at in range(m.first[k], m.first[k + 1]):
            left[m.items[at]] -= m.level[i]
    for i in range(rows):
        error = max(error, abs(left[i]))
    if error > DRIFT * most:
        _rebuild(m)
        _solve(m)


@step
def _solve(m: Master) -> None:
    """Compute primal values (inverse times limits) and dual values (basis costs times inverse)."""
    rows = len(m.level)
    m.level[:] = 0.0
    for j in range(rows):
        total = 0.0
        for i in range(rows):
            k = m.basis[i]
            total += m.inverse[j, i] * (m.charge[k] if k >= 0 else m.dear[-1 - k])
            m.level[i] += m.inverse[j, i] * m.limit[j]
        m.dual[j] = total


@step
def _rebuild(m: Master) -> None:
    """Recompute the inverse: let the columns of the basis enter one by one, each where its pivot is largest."""
    rows, wanted, way, has_slack = len(m.level), m.wanted, m.way, m.left
    m.inverse[:] = 0.0
    for i in range(rows):
        wanted[i], has_slack[i] = m.basis[i], 0.0
        m.inverse[i, i], m.basis[i] = 1.0, -1 - i
    for i in range(rows):
        if wanted[i] < 0:
            has_slack[-1 - wanted[i]] = 1.0
    for k in wanted:
        if k < 0:
            continue
        _direction(m, k, way)
        leave = -1
        for i in range(rows):
            if m.basis[i] < 0 and has_slack[i] == 0.0 and (leave < 0 or abs(way[i]) > abs(way[leave])):
                leave = i
        if leave >= 0 and abs(way[leave]) > TOLERANCE:
            _pivot(m, k, leave, way)


@entry
def levels(m: Master, out: FloatArray) -> tuple[float, float]:
    """Write each column's primal value to `out` (k,); return the objective, and the largest value of an uncovered item."""
    out[:] = 0.0
    total, most = 0.0, 0.0
    for i in range(len(m.level)):
        k = m.basis[i]
        if k >= 0:
            out[k] = m.level[i]
            total += m.level[i] * m.charge[k]
        else:
            total += m.level[i] * m.dear[-1 - k]
            if -1 - k < m.n:
                most = max(most, m.level[i])
    return total, most


@step
def _sort(items: IntArray, count: int) -> None:
    """Sort the first `count` items, which are few, in place."""
    for k in range(1, count):
        item, at = items[k], k
        while at > 0 and items[at - 1] > item:
            items[at] = items[at - 1]
            at -= 1
        items[at] = item


@kernel
def generate(
    c: FillCosts, charged: FillCosts, m: Master, looks: int, rounds: int, price: FloatArray, best_sets: BestSets
) -> tuple[float, int]:
    """Price out columns at the current duals, and add those with negative reduced cost.

    `charged` is a copy of the costs `c`, in which the cost of size beyond the room is overwritten. `best_sets` is scratch for
    `price_out`, which also uses `looks`, `rounds`, `price`.

    Returns
    -------
    The bound that the duals prove for the program with all columns, and the number of columns added.
    """
    n, rows, added, at = m.n, len(m.dual), 0, m.dual
    charged.outside[0] = max(0.0, -at[rows - 1]) / m.unit[0]
    bound = -charged.outside[0] * m.unit[0] * m.limit[rows - 1]
    for w in range(n):
        bound += at[w]
    for g in range(len(c.available)):
        rent = max(0.0, -at[n + g])
        least = rent + TOLERANCE
        bound -= rent * c.available[g]
        most, stored, looked = price_out(charged, g, at[:n], least, looks, rounds, price, best_sets)
        m.spent[0] += (rounds + 2) * n * (c.capacity[g] // 5 + 10) + LOOK * looked
        if most > least:
            bound -= min(c.available[g], n) * (most - rent)
        for k in range(stored):
            _sort(best_sets.items[k], best_sets.size[k])
            new = add(c, m, g, best_sets.items[k, : best_sets.size[k]])
            if reduced(m, new) < -TOLERANCE:
                added += 1
            else:
                m.used[0] -= 1
    return bound, added


@entry
def fix_columns(m: Master, chosen: IntArray, covered: BoolArray) -> None:
    """Fix columns to 1: their items become `covered` (n,), and other columns with one of them are penalized.

    The basis is unchanged, and so are the primal values in it: the next solution pivots the penalized columns out.
    """
    for k in chosen:
        for at in range(m.first[k], m.first[k + 1]):
            covered[m.items[at]] = True
        for other in range(m.used[0]):
            if other == k or not _overlap(m, other, k):
                continue
            m.charge[other] = m.cost[other]
            for at in range(m.first[other], m.first[other + 1]):
                m.charge[other] += 2.0 * m.dear[m.items[at]]


@step
def _overlap(m: Master, k: int, other: int) -> bool:
    """Return whether two columns have an item in common."""
    for at in range(m.first[k], m.first[k + 1]):
        for there in range(m.first[other], m.first[other + 1]):
            if m.items[at] == m.items[there]:
                return True
    return False
