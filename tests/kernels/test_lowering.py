"""Access of elements in compiled kernels, compared with the same code in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from poolwise.kernels.jit import entry, long_entry, step
from poolwise.kernels.python_code import python_code

RECORD = np.dtype([("count", np.int64), ("share", np.float64)])


class Alike(NamedTuple):
    """Arrays of one type, which Numba keeps in another class of tuples."""

    first: np.ndarray[Any, Any]
    second: np.ndarray[Any, Any]


class State(NamedTuple):
    """Arrays of all kinds that kernels access."""

    line: np.ndarray[Any, Any]
    grid: np.ndarray[Any, Any]
    cube: np.ndarray[Any, Any]
    flags: np.ndarray[Any, Any]
    small: np.ndarray[Any, Any]
    alike: Alike
    record: Any


def state(rng: np.random.Generator) -> State:
    return State(
        rng.integers(0, 9, 7),
        rng.random((3, 5)),
        rng.integers(0, 9, (2, 3, 4)),
        rng.integers(0, 2, 6).astype(np.bool_),
        rng.integers(0, 9, (4, 3)).astype(np.int32),
        Alike(rng.integers(0, 9, 5), rng.integers(0, 9, 8)),
        np.zeros(1, dtype=RECORD).view(np.recarray)[0],
    )


@step
def mix(state: State, i: int, j: int, k: int, column: Any, out: Any) -> None:
    row = state.small[i]  # a view of a row
    out[0] += state.line[i] + 2 * state.line[-1] + state.line.size
    out[1] += state.grid[i, j] + state.grid[-1, 0] + state.grid[2, j] + state.grid[1][j]
    out[2] += state.cube[i - 1, j, k] + state.cube.shape[1]
    out[3] += row[k - 1] + row.size + column[j] + 3 * column[-1]
    out[4] += len(state.alike.first) + state.alike.second[k] - state.alike.first[i]
    if state.flags[j] and not state.flags[-2]:
        out[5] += 1
    state.line[j] = k
    state.grid[i, k] = state.line[i]
    state.cube[1, i, -1] = j
    state.small[i, k - 1] = 7
    state.flags[k] = i == j
    state.alike.second[-2] = i
    state.record.count += j
    state.record.share = state.grid[i, j]


def body(state: State, column: Any, out: Any) -> int:
    for i in range(1, 3):
        for j in range(3):
            for k in range(1, 4):
                mix(state, i, j, k, column, out)
    return int(state.record.count)


short, long = entry(body), long_entry(body)


@pytest.mark.parametrize("compiled", [short, long], ids=["entry", "long entry"])
def test_elements_are_those_of_python(compiled: Any) -> None:
    for seed in range(20):
        ours, theirs = (state(np.random.default_rng(seed)) for _ in range(2))
        columns = np.random.default_rng(seed).random((4, 6))[:, 2]  # an array that is not contiguous
        results, expected = np.zeros(6), np.zeros(6)
        assert compiled(ours, columns, results) == python_code(compiled)(theirs, columns, expected)
        assert results.tobytes() == expected.tobytes()
        for name in ("line", "grid", "cube", "flags", "small"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
        np.testing.assert_array_equal(ours.alike.second, theirs.alike.second)
        assert ours.record == theirs.record


WRONG = """
import numpy as np
from poolwise.kernels.jit import entry

@entry
def read(values, i):
    return values[i]

print(read(np.arange(3), {index}))
"""


@pytest.mark.parametrize("index", [-1, pytest.param(3, marks=pytest.mark.long)])
def test_checks_of_bounds_report_a_wrong_index(index: int, tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text(WRONG.format(index=index))
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "IndexError: index is out of bounds" in ran.stderr
