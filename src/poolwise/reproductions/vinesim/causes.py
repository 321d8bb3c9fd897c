"""Switches of the VineSim reproduction: single changes that verify why claims of the report do not hold in our runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.reproductions.vinesim.claims import FACTORS, PERCENT, Item, figure_7, figure_16, nearest_factor
from poolwise.reproductions.vinesim.plan import VARIED
from poolwise.reproductions.vinesim.results import VineSimResults
from poolwise.reproductions.vinesim.setups import GPU

ANOTHER_LOAD = "another low load"
EVEN = "large jobs of even size"
WAITING = "tasks wait for a GPU"
UNEQUAL = "tasks not all equal"
PRINTED, READ = "15to1 as printed", "15to1"


def switches(results: VineSimResults) -> Mapping[str, Mapping[Key, Measured]]:
    """Return switch -> claim -> measurement with that switch alone, for the claims that each switch affects."""
    even = replace(results, changed={"large": "even"})
    waiting = replace(results, changed={"policy": "pref", "preferred": GPU})
    unequal = replace(results, changed={"varied": VARIED})
    found: dict[str, Iterable[Item]] = {
        ANOTHER_LOAD: _factors(results),
        f"{ANOTHER_LOAD}, {EVEN}": _factors(even),
        EVEN: _of("Figure 7f", READ, figure_7(even)),
        f"1,500,000 operations, {EVEN}": _as_printed(_of("Figure 7f", READ, figure_7(even))),
        WAITING: _of("Figure 7", READ, figure_7(waiting)),
        f"1,500,000 operations, {WAITING}": _as_printed(_of("Figure 7", READ, figure_7(waiting))),
        UNEQUAL: _of("Figure 16", "1 MB, inter-arrival time 0", figure_16(unequal)),
    }
    return {name: {key: value for key, value in part if not np.isnan(value.value)} for name, part in found.items()}


def _factors(results: VineSimResults) -> Iterable[Item]:
    """Yield the factors of Figure 5 at the load where each is nearest to the report's."""
    for kind, over, under, printed in FACTORS:
        metric = f"mean job latency, {PERCENT[over]} % over {PERCENT[under]} % GPUs"
        panel = "Figure 5b" if 8 in (over, under) else "Figure 5f"
        yield (panel, f"{kind}, low load", metric), nearest_factor(results, kind, over, under, printed)


def _of(artifact: str, condition: str, items: Iterable[Item]) -> Iterable[Item]:
    """Yield the items of one artifact whose condition starts as given, without those for the affinity "as printed"."""
    for key, value in items:
        if key[0] == artifact and key[1].startswith(condition) and not key[1].startswith(PRINTED):
            yield key, value


def _as_printed(items: Iterable[Item]) -> Iterable[Item]:
    """Yield the same values under the keys of the claims for the affinity as printed."""
    for (artifact, condition, metric), value in items:
        yield (artifact, condition.replace(READ, PRINTED, 1), metric), value
