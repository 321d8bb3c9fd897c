"""Measured values of the claims in catalog/reproductions/drmaestro.csv."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.metrics.intervals import mean_interval
from poolwise.reproductions.drmaestro.cells import (
    BEYOND,
    OUR_PHASE,
    POLICIES,
    SCENARIOS,
    SOLVED_ONCE,
    VARIANTS,
    DrMaestroCase,
    DrMaestroPolicy,
    DrMaestroScenario,
)
from poolwise.reproductions.drmaestro.changes import CHANGES

NAMES: Mapping[DrMaestroPolicy, str] = {"firmament": "Firmament", "drmaestro": "DRMaestro", "network_aware": "network-aware"}
TABLES = {4: ("Table 2", "Table 3"), 16: ("Table 4", "Table 5"), 128: ("Table 4", "Table 5")}
"""Number of machines -> tables of makespans and of violations."""
COUNTS = {"violations": "execution longer than the goal", "violations_queueing": "submission to end longer than the goal"}
FOUR_TIMES = "from submission on, goals four times as long"
"""Violation definition fitted to the published ratio of 16 machines; the other settings test it."""


@dataclass(frozen=True)
class DrMaestroResults:
    """Measurements of every case, and CPU times of the rounds of the timed cases."""

    cases: Mapping[DrMaestroCase, Mapping[str, Any]]
    rounds: Mapping[DrMaestroCase, Mapping[str, Any]]

    def seeds(
        self, scenario: DrMaestroScenario, policy: DrMaestroPolicy, metric: str, change: str = "", variant: str = ""
    ) -> FloatArray:
        """Return (n_seed,) values of a metric in seed order.

        A policy that a variant does not affect is looked up without the variant. "NAME:2" selects the third value of a metric
        that is a list.
        """
        wanted = scenario, policy, change, variant if policy in VARIANTS[variant].policies else ""
        mine = [c for c in self.cases if (c.scenario, c.policy, c.change, c.variant) == wanted]
        found = [self.cases[c] for c in sorted(mine, key=lambda c: c.seed)]
        name, _, column = metric.partition(":")
        return np.array([each[name][int(column)] if column else each[name] for each in found], dtype=np.float64)

    def ratio(
        self,
        scenario: DrMaestroScenario,
        above: DrMaestroPolicy,
        below: DrMaestroPolicy,
        metric: str = "makespan_s",
        change: str = "",
        variant: str = "",
    ) -> FloatArray:
        """Return (n_seed,) ratios of a metric under two policies, seed by seed, so on the same jobs."""
        over, under = (self.seeds(scenario, policy, metric, change, variant) for policy in (above, below))
        both = min(len(over), len(under))
        found: FloatArray = over[:both] / under[:both]
        return found

    def scenarios(self, spread: bool = False) -> list[DrMaestroScenario]:
        """Return the scenarios that were run, in the paper's order."""
        known = {case.scenario for case in self.cases}
        return [s for s in (replace(s, spread=spread) for s in SCENARIOS) if s in known]

    def changed(self) -> list[DrMaestroScenario]:
        """Return the scenarios in which assumptions were changed."""
        known = {case.scenario for case in self.cases if case.change in CHANGES}
        return [scenario for scenario in self.scenarios() if scenario in known]


def measure(results: DrMaestroResults) -> dict[Key, Measured]:
    """Return the measured value of every claim that the runs cover."""
    parts = (_makespans, _violations, _gpus, _our_phase, _spread, _rounds, _sensitivity)
    return {key: value for part in parts for key, value in part(results)}


def mean(values: FloatArray) -> Measured:
    """Return the mean over seeds with its 95 % interval; NaN without measurements."""
    if not len(values):
        return Measured(math.nan)
    found = mean_interval(values)
    return Measured(found.mean, found.low, found.high, runs=len(values))


KeyedRows = Iterator[tuple[Key, Measured]]


def _makespans(results: DrMaestroResults) -> KeyedRows:
    for s in results.scenarios():
        table = TABLES[s.machines][0]
        for policy in POLICIES:
            yield (table, str(s), f"makespan, {NAMES[policy]}"), mean(results.seeds(s, policy, "makespan_s"))
        yield from _speedups(results, s)
    four = [s for s in results.scenarios() if s.machines == 4]
    if len(four) == 2:
        gain = [results.ratio(s, "firmament", "drmaestro") for s in four]
        yield ("Experiment 2", "4 machines", "gain with 128 jobs less gain with 512"), mean(gain[0] - gain[1])


def _speedups(results: DrMaestroResults, s: DrMaestroScenario, variant: str = "") -> KeyedRows:
    """Yield the makespan ratios between the policies."""
    table = TABLES[s.machines][0]
    for policy in POLICIES[1:]:
        found = results.ratio(s, "firmament", policy, variant=variant)
        yield (table, str(s), f"makespan of Firmament / {NAMES[policy]}"), mean(found)
    aware = results.ratio(s, "drmaestro", "network_aware", variant=variant)
    yield (table, str(s), "makespan of DRMaestro / network-aware"), mean(aware)
    yield (table, str(s), "makespan of DRMaestro / network-aware, less 1"), mean(aware - 1)


def _violations(results: DrMaestroResults) -> KeyedRows:
    for s in results.scenarios():
        for metric, what in COUNTS.items():
            for policy in POLICIES:
                key = TABLES[s.machines][1], str(s), f"violations, {NAMES[policy]}; {what}"
                yield key, mean(results.seeds(s, policy, metric))
            yield from _compared(results, s, metric, what)


def _compared(results: DrMaestroResults, s: DrMaestroScenario, metric: str, what: str, variant: str = "") -> KeyedRows:
    """Yield the differences and ratios of violations between the policies, for the rows of one definition."""
    table, plain, aware = TABLES[s.machines][1], *POLICIES[1:]
    of_plain, of_aware = (results.seeds(s, policy, metric, variant=variant) for policy in (plain, aware))
    both = min(len(of_plain), len(of_aware))
    less = of_plain[:both] - of_aware[:both]
    yield (table, str(s), f"violations of DRMaestro less network-aware; {what}"), mean(less)
    times = results.ratio(s, "firmament", aware, metric, variant=variant)
    yield (table, str(s), f"violations of Firmament / network-aware; {what}"), mean(times)


def switches(results: DrMaestroResults) -> dict[str, dict[Key, Measured]]:
    """Return switch -> claim -> measurement with that switch alone, for the claims that each switch affects."""
    found: dict[str, dict[Key, Measured]] = {OUR_PHASE: {}, SOLVED_ONCE: {}, FOUR_TIMES: {}}
    for s in results.scenarios():
        for variant in (OUR_PHASE, SOLVED_ONCE):
            found[variant] |= dict(_speedups(results, s, variant))
        for metric, what in COUNTS.items():
            for variant in (OUR_PHASE, SOLVED_ONCE):
                found[variant] |= dict(_compared(results, s, metric, what, variant))
            found[FOUR_TIMES] |= dict(_compared(results, s, f"beyond:{BEYOND.index(4.0)}", what))
    return found


def _gpus(results: DrMaestroResults) -> KeyedRows:
    for s in results.scenarios():
        spare = 0.5 - results.seeds(s, "firmament", "most_used_before")
        yield (
            ("Figures 4 to 9", str(s), "half of the GPUs less Firmament's most before the warm-up ends"),
            Measured(spare.min()),
        )
        most = results.seeds(s, "drmaestro", "most_used_before")
        yield (
            ("Figures 4 to 9", str(s), "share of the GPUs that DRMaestro uses at most before the warm-up ends"),
            Measured(most.min()),
        )
    for s in results.scenarios():
        local = results.seeds(s, "firmament", "execution_s")
        yield ("Model", str(s), "mean execution time, Firmament"), mean(local)
        yield ("Model", str(s), "mean execution time, DRMaestro"), mean(results.seeds(s, "drmaestro", "execution_s"))


def _our_phase(results: DrMaestroResults) -> KeyedRows:
    """Yield the makespans with a first phase that prefers nodes with free devices."""
    for s in results.scenarios():
        for policy in POLICIES[1:]:
            found = results.ratio(s, "firmament", policy, variant=OUR_PHASE)
            yield ("Our first phase", str(s), f"makespan of Firmament / {NAMES[policy]}"), mean(found)


def _spread(results: DrMaestroResults) -> KeyedRows:
    for s in results.scenarios(spread=True):
        for policy in POLICIES[1:]:
            key = "Warm-up on every machine", str(s), f"makespan of Firmament / {NAMES[policy]}"
            yield key, mean(results.ratio(s, "firmament", policy))


def _rounds(results: DrMaestroResults) -> KeyedRows:
    for s in sorted({case.scenario for case in results.rounds}, key=lambda s: (s.machines, s.jobs)):
        of = {case.policy: found for case, found in results.rounds.items() if case.scenario == s}
        total = {policy: np.array(found["total_s"]) for policy, found in of.items()}
        slow = float(total["drmaestro"].mean() / total["firmament"].mean())
        yield (_figure(s), str(s), "mean time of a round, DRMaestro / Firmament"), Measured(slow)
        solved = {policy: found["solved"] / len(found["total_s"]) for policy, found in of.items()}
        yield (
            (_figure(s), str(s), "flow problems in a round, DRMaestro / Firmament"),
            Measured(solved["drmaestro"] / solved["firmament"]),
        )
        each = {policy: found["solved"] / max(1, found["solving"]) for policy, found in of.items()}
        yield (
            (_figure(s), str(s), "flow problems in a round that solves any, DRMaestro / Firmament"),
            Measured(each["drmaestro"] / max(each["firmament"], 1e-9)),
        )
        longest = max(float(values.max()) for values in total.values())
        yield (_figure(s), str(s), "1 s less the longest round"), Measured(1.0 - longest)


def _figure(scenario: DrMaestroScenario) -> str:
    return "Figure 6" if scenario.machines == 4 else "Figure 8"


def _sensitivity(results: DrMaestroResults) -> KeyedRows:
    for s in results.changed():
        gain, aware, fewer = [], [], []
        for change in CHANGES:
            gain.append(float(results.ratio(s, "firmament", "drmaestro", change=change).mean()) - 1)
            aware.append(float(results.ratio(s, "drmaestro", "network_aware", change=change).mean()) - 1)
            plain, na = (results.seeds(s, policy, "violations", change) for policy in POLICIES[1:])
            fewer.append(float((plain - na).mean()))
        rows = (
            ("makespan of Firmament / DRMaestro, less 1", gain),
            ("makespan of DRMaestro / network-aware, less 1", aware),
            ("violations of DRMaestro less network-aware", fewer),
        )
        for metric, values in rows:
            worst = int(np.argmin(values))
            yield ("Sensitivity", str(s), f"least of all changes: {metric}"), Measured(values[worst], note=list(CHANGES)[worst])


def explain(results: DrMaestroResults) -> Sequence[str]:
    """Describe which conclusions depend on the assumptions."""
    paragraphs = []
    for s in results.changed():
        lost = [c for c in CHANGES if float(results.ratio(s, "firmament", "drmaestro", change=c).mean()) <= 1.005]
        slower = [c for c in CHANGES if float(results.ratio(s, "drmaestro", "network_aware", change=c).mean()) < 1]
        paragraphs.append(
            f"{s}: disaggregation does not shorten the makespan under {_list(lost)}; the network-aware policy has the longer "
            f"makespan of the two under {_list(slower)} ({len(CHANGES)} changes, one at a time)."
        )
    return paragraphs


def _list(names: Sequence[str]) -> str:
    return "; ".join(f"'{name}'" for name in names) if names else "none of the changes"
