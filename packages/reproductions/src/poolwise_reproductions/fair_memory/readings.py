"""The specification's reading of the Fair Memory paper, and three switches that the paper leaves open.

No source shows what the authors ran. With all three switches the paper's order appears, but this does not show that the authors
used them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from poolwise.files.component import Component

BackfillName = Literal["none", "easy", "no extra", "nodes only", "nodes only, no extra"]
COMPARED: tuple[BackfillName, ...] = ("easy", "nodes only, no extra", "no extra", "nodes only")
"""EASY as specified, EASY on nodes alone without extra nodes, and each of the two differences between them alone."""
BACKFILLS: Mapping[BackfillName, Component] = {
    "none": Component(name="none"),
    "easy": Component(name="easy"),
    "nodes only, no extra": Component.of("easy_nodes_only", {"extra": False}),
    "no extra": Component.of("easy", {"extra": False}),
    "nodes only": Component(name="easy_nodes_only"),
}


@dataclass(frozen=True)
class FairMemoryReading:
    """Reading of the paper; the default is the specification's.

    Attributes
    ----------
    backfill : backfilling policy of all orders
    f1 : sign of F1: "f1" puts small jobs first, "f1_as_printed" large jobs
    baseline : machine of the run without backfilling that is the reference for fairness: "pools", the same machine, or "512 GB"
    in every node, which section IV-B calls the baseline
    """

    backfill: BackfillName = "easy"
    f1: Literal["f1", "f1_as_printed"] = "f1"
    baseline: Literal["pools", "512 GB"] = "pools"


SPEC = FairMemoryReading()
COMBINED = FairMemoryReading("nodes only, no extra", "f1_as_printed", "512 GB")
"""Combination of all three switches, under which the paper's order appears."""
ALL_SWITCHES = "all three switches"
"""Label of the combination."""
SWITCHES = {"backfill by nodes, no extra": "backfill", "F1 as printed": "f1", "fairness against 512 GB": "baseline"}
"""Cause -> the field of a reading that it switches."""


def switched(causes: Iterable[str]) -> FairMemoryReading:
    """Return the specification's reading with some causes switched on."""
    fields = [SWITCHES[cause] for cause in causes]
    return replace(SPEC, **{field: getattr(COMBINED, field) for field in fields})


def ablations() -> dict[str, FairMemoryReading]:
    """Return label -> reading: no cause, each cause alone, all causes but one, all causes."""
    names = tuple(SWITCHES)
    alone = {f"only {name}": switched([name]) for name in names}
    without = {
        f"all but {next(iter(set(names) - set(pair)))}": switched(pair) for pair in reversed(list(combinations(names, 2)))
    }
    return {"spec": SPEC, **alone, **without, ALL_SWITCHES: COMBINED}
