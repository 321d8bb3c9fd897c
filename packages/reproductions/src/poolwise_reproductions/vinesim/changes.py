"""Measurements with a single changed setting, for the claims that it affects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.published import Key
from poolwise_reproductions.results import KeyedRow, without_nan
from poolwise_reproductions.vinesim import claims
from poolwise_reproductions.vinesim.plan import VARIED
from poolwise_reproductions.vinesim.results import VineSimResults
from poolwise_reproductions.vinesim.setups import GPU

EVEN = "large jobs of even size"
WAITING = "tasks wait for a GPU"
UNEQUAL = "tasks not all equal"
PRINTED, READ = "15to1 as printed", "15to1"


def size_switches(results: VineSimResults) -> Mapping[str, Mapping[Key, Measured]]:
    """Return switch -> claim -> measurement with that single change, for the claims of Figures 5 and 7 that it affects."""
    even = replace(results, changed={"large": "even"})
    waiting = replace(results, changed={"policy": "pref", "preferred": GPU})
    of_even = _of("Figure 7f", READ, claims.figure_7(even))
    of_waiting = _of("Figure 7", READ, claims.figure_7(waiting))
    return {
        EVEN: of_even
        | _of("Load axis", "INT", claims.nearest_factors(even))
        | _of("Figure 5f", "INT, low load", claims.figure_5(even)),
        f"1,500,000 operations, {EVEN}": _as_printed(of_even),
        WAITING: of_waiting,
        f"1,500,000 operations, {WAITING}": _as_printed(of_waiting),
    }


def data_switches(results: VineSimResults) -> Mapping[str, Mapping[Key, Measured]]:
    """Return switch -> claim -> measurement with that single change, for the claims of Figure 16 that it affects."""
    unequal = replace(results, changed={"varied": VARIED})
    return {UNEQUAL: _of("Figure 16", "1 MB, inter-arrival time 0", claims.figure_16(unequal))}


def _of(artifact: str, condition: str, rows: Iterable[KeyedRow]) -> dict[Key, Measured]:
    """Return the rows of one artifact whose condition starts as given, without those for the affinity "as printed"."""
    measured = without_nan(rows).items()
    return {k: v for k, v in measured if k[0] == artifact and k[1].startswith(condition) and not k[1].startswith(PRINTED)}


def _as_printed(rows: Mapping[Key, Measured]) -> dict[Key, Measured]:
    """Return the values under the keys of the claims for the affinity as printed."""
    return {(artifact, where.replace(READ, PRINTED, 1), metric): value for (artifact, where, metric), value in rows.items()}
