"""Effect of single changes of Algorithms 1 and 2 on saturated pooled devices, and on the rows of Tables III to V."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from poolwise.presentation.table import Table
from poolwise.traces.generators.nvme_mix import SHARES
from poolwise_reproductions.criteria import ClaimVerdict, Measured
from poolwise_reproductions.nvme_composition.cells import Algorithms
from poolwise_reproductions.nvme_composition.claims import AWARE, LEAD, MISSED, NvmeResults, table
from poolwise_reproductions.nvme_composition.plan import ALGORITHMS, SATURATED, SHORT
from poolwise_reproductions.published import Claim, Key
from poolwise_reproductions.results import KeyedRow, without_nan

CHANGE = "missed deadlines, less those without the change"


def effects(results: NvmeResults, artifact: str) -> Iterator[KeyedRow]:
    """Measure how each change of an artifact changes the missed deadlines of the disaggregation-aware policy."""
    for condition, algorithms in ALGORITHMS[artifact].items() if results.mode == "default" else ():
        changed = replace(results, algorithms=algorithms)
        for scenario, load in product(SHARES, SATURATED):
            less = results.less(changed.at(scenario, load, AWARE), results.at(scenario, load, AWARE), MISSED)
            yield (artifact, f"{condition}, {scenario}, load {load}", CHANGE), less


def judged(results: NvmeResults, claims: Sequence[Claim]) -> dict[Key, ClaimVerdict]:
    """Return the verdicts of the rows of Tables III to V that depend on the policy on saturated pooled devices."""
    measured: dict[Key, Measured] = without_nan(row for scenario in SHARES for row in table(results, scenario))
    loads = tuple(f"load {load}, disaggregated" for load in SATURATED)
    verdicts = {}
    for claim in claims:
        mine = claim.condition.endswith(AWARE) or claim.metric == LEAD
        if claim.key in measured and claim.kind == "paper" and mine and any(load in claim.condition for load in loads):
            verdicts[claim.key] = claim.criterion.verdict(measured[claim.key])
    return verdicts


def describe(results: NvmeResults, claims: Sequence[Claim]) -> list[str]:
    """Describe how many rows hold with each change alone, and without any; empty without runs."""
    plain, parts = judged(results, claims), []
    for condition, algorithms in _changes().items():
        verdicts = judged(replace(results, algorithms=algorithms), claims)
        if verdicts:
            held = sum(verdict == "holds" for verdict in verdicts.values())
            gained = sum(verdict == "holds" != plain[key] for key, verdict in verdicts.items())
            lost = sum(plain[key] == "holds" != verdict for key, verdict in verdicts.items())
            parts.append(f"{condition}: {held} ({gained} more, {lost} no longer)")
    if not parts:
        return []
    held = sum(verdict == "holds" for verdict in plain.values())
    return [
        f"Single changes of Algorithms 1 and 2, over {results.plan.seeds} seeds: of {len(plain)} rows of Tables III to V for "
        f"the disaggregation-aware policy on pooled devices at loads {SATURATED[0]} to {SATURATED[-1]}, {held} hold without a "
        f"change. {'; '.join(parts)}."
    ]


def effect_table(results: NvmeResults) -> list[Table]:
    """Return the table of the change of missed deadlines, in points; empty without runs."""
    rows, cells = [], list(product(SHARES, SATURATED))
    for condition, algorithms in _changes().items():
        changed = replace(results, algorithms=algorithms)
        less = [results.less(changed.at(s, load, AWARE), results.at(s, load, AWARE), MISSED) for s, load in cells]
        if any(each.value == each.value for each in less):
            rows.append([condition, *(f"{each.value:+.2f} ({each.low:+.2f} to {each.high:+.2f})" for each in less)])
    if not rows:
        return []
    note = (
        "Missed deadlines with the change minus those without it, in percentage points, for the disaggregation-aware "
        "policy on pooled devices under the text's physics: means and 95 % intervals over the seeds."
    )
    header = ("change", *(f"{SHORT[s]}, load {load}" for s, load in cells))
    return [Table("Single changes of Algorithms 1 and 2", header, rows, note)]


def _changes() -> Mapping[str, Algorithms]:
    return {condition: each for changes in ALGORITHMS.values() for condition, each in changes.items()}
