"""Single changes of the trace, the backfilling or the measurement window; their runs verify why claims fail.

No reading includes any of them. Loads of 0.85 to 1.4 and memory factors of 1.3, 1.6, 2 and 3 were tried; the changes keep the
values that turn a claim or show the cause that names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Literal

from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.fair_memory import claims
from poolwise_reproductions.fair_memory.plan import SEARCHED
from poolwise_reproductions.fair_memory.readings import ALL_SWITCHES, BackfillName
from poolwise_reproductions.fair_memory.results import FairMemoryResults
from poolwise_reproductions.fair_memory.runs import LATENCIES, MACHINES, ORDERS, FairMemoryCase
from poolwise_reproductions.published import READING_TEXTS, ChangeTexts, Claim, Key
from poolwise_reproductions.published import SWITCH as PREFIX
from poolwise_reproductions.reproduction import Part
from poolwise_reproductions.results import without_nan

WIDE, NARROW = "memory follows the width (0.8)", "memory follows the width (0.4)"
TWICE = "jobs on twice the nodes for half the time"
BY_NODES: BackfillName = "nodes only, no extra"
NEAR_PEAK = {"perlmutter": (12, 16, 20, 24, 28, 32), "juwels": (2, 4, 6, 8)}
"""Sizes around the best throughput per memory dollar."""
ALL = {name: machine.sizes for name, machine in MACHINES.items()}


@dataclass(frozen=True)
class SingleChange:
    """Difference from the specification's reading, and the runs that show it.

    Attributes
    ----------
    sizes : machine -> pool sizes at which the orders run
    trace, backfill, last : fields of `FairMemoryCase`
    orders : orders that run
    baseline : whether FM also runs with 512 GB in every node
    seeds : number of seeds, if greater than for the other runs
    """

    sizes: Mapping[str, tuple[int, ...]]
    trace: str = ""
    backfill: BackfillName = "easy"
    last: Literal["started", "submitted"] = "started"
    orders: tuple[str, ...] = ORDERS
    baseline: bool = False
    seeds: int = 0

    def cases(self, seeds: int) -> list[FairMemoryCase]:
        """Return the runs, with at least the given number of seeds."""
        cases = []
        for machine, seed in product(self.sizes, range(max(seeds, self.seeds))):
            case = partial(FairMemoryCase, machine, seed, trace=self.trace, backfill=self.backfill, last=self.last)
            cases += [case(order, size) for size in self.sizes[machine] for order in self.orders]
            cases += [case("fm", 0)] if self.baseline else []
        return cases


CHANGES: Mapping[str, SingleChange] = {
    "load 0.85": SingleChange({"perlmutter": (44,), "juwels": (24,)}, "load 0.85", seeds=40),
    "load 0.9": SingleChange({"perlmutter": (44,)}, "load 0.9", seeds=40),
    "load 1.1": SingleChange({"juwels": (6,)}, "load 1.1", orders=("fm",), baseline=True, seeds=40),
    "load 1.4": SingleChange(NEAR_PEAK, "load 1.4", orders=("fm",), baseline=True, seeds=40),
    TWICE: SingleChange({"perlmutter": (48,)}, TWICE, seeds=40),
    "memory 1.3 times": SingleChange(ALL, "memory 1.3 times", orders=("fm",), baseline=True, seeds=40),
    "memory 3 times": SingleChange({"perlmutter": (16,)}, "memory 3 times"),
    WIDE: SingleChange({"perlmutter": (16, 44, 48), "juwels": (24,)}, WIDE),
    "window to the start of the job submitted last": SingleChange({"perlmutter": (44, 48), "juwels": (24,)}, last="submitted"),
    f"{WIDE} and backfill by nodes, no extra": SingleChange({"perlmutter": SEARCHED, "juwels": (4,)}, WIDE, BY_NODES),
    f"{NARROW} and backfill by nodes, no extra": SingleChange({"juwels": (2, 4, 6, 8)}, NARROW, BY_NODES),
}
"""Name of a change, which claims name as a switch -> the change. Names with "and" are packages of two changes."""
_ALONE = "[: with that alone, this value is {switched} instead of {measured}]"
TEXTS = ChangeTexts(
    {
        "only backfill by nodes, no extra": "EASY here reserves pool memory too, and jobs that end late may run on nodes that "
        f"its reservation does not need; backfilling by nodes alone, without such nodes, is an open question{_ALONE}",
        "only F1 as printed": "with the sign of its own authors, F1 puts small jobs first; with the sign printed in this paper "
        f"it puts large jobs first{_ALONE}",
        "only fairness against 512 GB": "fairness is relative to the same machine here; section IV-B calls 512 GB in every "
        f"node the baseline{_ALONE}",
        LATENCIES["mix"][0]: "the paper slows all remote memory of the scope system like memory in another rack; our "
        "specification counts that of the own rack as near[: with it, this value is {switched} instead of {measured}]",
    },
    {
        "all but fairness against 512 GB": "backfilling by nodes alone without extra nodes and F1 as printed",
        "all but F1 as printed": "backfilling by nodes alone without extra nodes and fairness against 512 GB",
        "all but backfill by nodes, no extra": "F1 as printed and fairness against 512 GB",
        **{name: name for name in CHANGES if " and " in name},
        ALL_SWITCHES: "backfilling by nodes alone without extra nodes, F1 as printed and fairness against 512 GB",
        **READING_TEXTS,
    },
)
"""Causes that the switches verify, and the packages of several switches or changes."""
NOTE = (
    "Runs with a single change verify causes; none of them is a reading. Loads of 0.85, 0.9, 0.93 and 1.1 to 1.4 and "
    "memory factors "
    "of 1.3, 1.6, 2 and 3 were tried, and those that turn a claim are kept, so a change shows that a cause is "
    "sufficient, not that it applied in the paper. Earlier arrivals within the three days, times divided by 10 and "
    "submit times as timestamps were tried without turning a further claim. At another load the same jobs arrive in more "
    "or less than the published three days, and the larger memory exceeds the weighted mean of Figure 11. With a window "
    "to the start of the job submitted last, throughput falls as the pool grows, so the paper's window is another."
)
"""Note on the changes for readers."""


def needed(all_claims: Sequence[Claim], parts: Sequence[Part], seeds: int) -> list[FairMemoryCase]:
    """Return the runs of the changes that are named by the claims of some parts."""
    names = {claim.shown_by.removeprefix(PREFIX) for claim in all_claims if any(part.measures(claim.key) for part in parts)}
    return [case for name in CHANGES if name in names for case in CHANGES[name].cases(seeds)]


def near_in_rack(results: FairMemoryResults) -> dict[str, dict[Key, Measured]]:
    """Return the rows of Figure 9 with the specification's latency of the scope system, keyed by the name of the change."""
    views = (replace(results, latency="mix", repeats=0).on(machine) for machine in MACHINES)
    return {LATENCIES["mix"][0]: without_nan(row for view in views if view.sizes for row in claims.figure_9(view))}


def verifying(all_claims: Sequence[Claim], results: FairMemoryResults) -> dict[str, dict[Key, Measured]]:
    """Return change -> claim that names it -> measurement with only that change."""
    return {name: _rows(name, change, all_claims, results) for name, change in CHANGES.items()}


def _rows(name: str, change: SingleChange, all_claims: Sequence[Claim], results: FairMemoryResults) -> dict[Key, Measured]:
    """Return the rows of the claims that name a change, whose runs are viewed under the specification's reading."""
    runs = {case: results.measurements[case] for case in change.cases(results.seed_count) if case in results.measurements}
    plain = {replace(case, trace="", backfill="easy", last="started"): run for case, run in runs.items()}
    view = replace(results, measurements=plain, repeats=change.seeds, seed_count=max(change.seeds, results.seed_count))
    named = {claim.key for claim in all_claims if claim.shown_by == f"{PREFIX}{name}"}
    rows: dict[Key, Measured] = {}
    for cells in (view.on(machine) for machine in change.sizes):
        if not cells.sizes:
            continue
        parts = [claims.figure_7(cells)] if len(change.orders) > 1 else [claims.figure_10(cells), claims.figure_11(cells)]
        rows |= {key: value for part in parts for key, value in without_nan(part).items() if key in named}
    return rows
