"""Measured values of the claims in catalog/claims/drmaestro.csv."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.presentation.table import Table
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.drmaestro.cells import (
    BEYOND,
    OUR_PHASE,
    POLICIES,
    PROFILES,
    SCENARIOS,
    VARIANTS,
    DrMaestroCase,
    DrMaestroPolicy,
    DrMaestroScenario,
)
from poolwise_reproductions.drmaestro.changes import CHANGES, FITS, TWICE_THE_LINKS, Change
from poolwise_reproductions.drmaestro.experiments import EXPERIMENTS, MOSTLY_ABOVE
from poolwise_reproductions.published import Key
from poolwise_reproductions.results import KeyedRow

NAMES: Mapping[DrMaestroPolicy, str] = {"firmament": "Firmament", "drmaestro": "DRMaestro", "network_aware": "network-aware"}
TABLES = {4: ("Table 2", "Table 3"), 16: ("Table 4", "Table 5"), 128: ("Table 4", "Table 5")}
"""Number of machines -> tables of makespans and of violations."""
SPEEDUP = dict(zip(SCENARIOS, ((1.5057, 1.5379), (1.2688, 1.3161), (1.2098, 1.2499), (1.1188, 1.1990)), strict=True))
"""Published makespan of Firmament divided by that of each of the other two policies (Tables 2 and 4)."""
GPUS_IN = dict(zip(SCENARIOS, ("Figure 4", "Figure 5", "Figure 7", "Figure 9"), strict=True))
"""Setting -> the paper's figure of its GPUs in use."""
BY_LOCAL_TIME = "execution longer than the mean local time"
"""Violations by the SLO that the paper prints, "the task's expected completion time": jobs that suffered slowdown."""
COUNTS = {
    "violations_local": BY_LOCAL_TIME,
    "violations": "execution longer than the goal",
    "violations_queueing": "submission to end longer than the goal",
}
"""Metric of a definition of violations -> the definition in words."""
LINK_MB_S = 12_500
"""MB/s of a link of 100 Gb/s; the profiles give each kind a share of it."""
FOUR_TIMES = "from submission on, goals four times as long"
"""Violation definition fitted to the published ratio of 16 machines; the other settings test it."""
THREE_TIMES = "from submission on, goals three times as long"
"""Violation definition fitted to the published ratio of Firmament to DRMaestro with 128 machines."""
Machines = tuple[int, ...]
FOUR, MORE = (4,), (16, 128)
"""Numbers of machines of Tables 2 and 3 and of Tables 4 and 5."""
ANY = FOUR + MORE
FIT_ON = SCENARIOS[0]
"""Setting to which the remote times are fitted; the other three also served to choose the assumed times."""


@dataclass(frozen=True)
class DrMaestroResults:
    """Measurements of every case, and CPU times of the rounds of the timed cases."""

    cases: Mapping[DrMaestroCase, Mapping[str, Any]]
    rounds: Mapping[DrMaestroCase, Mapping[str, Any]]

    def seeds(
        self, scenario: DrMaestroScenario, policy: DrMaestroPolicy, metric: str, change: str = "", variant: str = "",
        experiment: str = "",
    ) -> FloatArray:  # fmt: skip
        """Return the values of a metric in seed order, (n_seed,).

        A policy that a variant does not affect is looked up without the variant. "NAME:2" selects the third value of a metric
        that is a list.
        """
        wanted = scenario, policy, change, variant if policy in VARIANTS[variant].policies else "", experiment
        mine = [c for c in self.cases if (c.scenario, c.policy, c.change, c.variant, c.experiment) == wanted]
        runs = [self.cases[c] for c in sorted(mine, key=lambda c: c.seed)]
        name, _, column = metric.partition(":")
        return np.array([each[name][int(column)] if column else each[name] for each in runs], dtype=np.float64)

    def ratio(
        self, scenario: DrMaestroScenario, above: DrMaestroPolicy, below: DrMaestroPolicy, metric: str = "makespan_s",
        change: str = "", variant: str = "", experiment: str = "",
    ) -> FloatArray:  # fmt: skip
        """Return the ratios of a metric under two policies, (n_seed,), paired by seed and thus by jobs."""
        over, under = (self.seeds(scenario, policy, metric, change, variant, experiment) for policy in (above, below))
        both = min(len(over), len(under))
        ratios: FloatArray = over[:both] / under[:both]
        return ratios

    def scenarios(self, machines: Machines = ANY, spread: bool = False) -> list[DrMaestroScenario]:
        """Return the scenarios that were run, in the paper's order."""
        recorded = {case.scenario for case in self.cases}
        return [s for s in (replace(s, spread=spread) for s in SCENARIOS) if s in recorded and s.machines in machines]

    def changed(self) -> list[DrMaestroScenario]:
        """Return the scenarios in which every assumption was changed; a single change may serve as a switch."""
        recorded = {(case.scenario, case.change) for case in self.cases}
        return [scenario for scenario in self.scenarios() if all((scenario, change) in recorded for change in CHANGES)]

    def timed(self) -> dict[DrMaestroScenario, dict[DrMaestroPolicy, Mapping[str, Any]]]:
        """Return scenario -> policy -> round times, small scenarios first."""
        scenarios = sorted({case.scenario for case in self.rounds}, key=lambda s: (s.machines, s.jobs))
        return {s: {case.policy: times for case, times in self.rounds.items() if case.scenario == s} for s in scenarios}


def tables(results: DrMaestroResults, machines: Machines) -> Iterator[KeyedRow]:
    """Measure Tables 2 and 3 or 4 and 5: makespans and their ratios, and violations of goals under both definitions."""
    for s in results.scenarios(machines):
        makespans, violations = TABLES[s.machines]
        for policy in POLICIES:
            seconds = results.seeds(s, policy, "makespan_s")
            yield (makespans, str(s), f"makespan, {NAMES[policy]}"), Measured.over_seeds(seconds)
        yield from _speedups(results, s)
        for metric, what in COUNTS.items():
            for policy in POLICIES:
                counts = results.seeds(s, policy, metric)
                yield (violations, str(s), f"violations, {NAMES[policy]}; {what}"), Measured.over_seeds(counts)
            yield from _compared(results, s, metric, what)


def figure_3(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure Figure 3 from the profiles: how load slows each kind's data transfers, and the shares that the paper prints."""
    for kind in ("hotspot", "nw"):
        profile = read_device_profiles(PROFILES)[kind]
        share = profile.link_mb_s / LINK_MB_S
        idle, loaded = share * profile.remote_s, profile.loaded_s - (1 - share) * profile.remote_s
        yield ("Figure 3", kind, "slowdown of the data transfers under full load"), Measured(100 * (loaded / idle - 1))
        under_load = loaded / profile.loaded_s
        less = "share of the transfers without load below that under full load"
        yield ("Figure 3", kind, f"{less}, relative"), Measured(100 * (1 - share / under_load))
        yield ("Figure 3", kind, f"{less}, points"), Measured(100 * (under_load - share))


def experiment_2(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure how much more disaggregation shortens the makespan when there are fewer jobs."""
    few, many = (results.ratio(s, "firmament", "drmaestro") for s in SCENARIOS[:2])
    gain = few - many if len(few) and len(many) else few[:0]
    yield ("Experiment 2", "4 machines", "gain with 128 jobs minus gain with 512"), Measured.over_seeds(gain)


def _speedups(results: DrMaestroResults, s: DrMaestroScenario, variant: str = "", experiment: str = "") -> Iterator[KeyedRow]:
    """Yield the makespan ratios between the policies."""
    table = TABLES[s.machines][0]
    yield from _over_firmament(results, table, s, variant, experiment)
    aware = results.ratio(s, "drmaestro", "network_aware", variant=variant, experiment=experiment)
    yield (table, str(s), "makespan of DRMaestro / network-aware"), Measured.over_seeds(aware)
    yield (table, str(s), "makespan of DRMaestro / network-aware, minus 1"), Measured.over_seeds(aware - 1)


def _over_firmament(
    results: DrMaestroResults, artifact: str, s: DrMaestroScenario, variant: str = "", experiment: str = ""
) -> Iterator[KeyedRow]:
    """Yield the makespan of Firmament divided by that of each other policy."""
    for policy in POLICIES[1:]:
        ratios = results.ratio(s, "firmament", policy, variant=variant, experiment=experiment)
        yield (artifact, str(s), f"makespan of Firmament / {NAMES[policy]}"), Measured.over_seeds(ratios)


def _compared(
    results: DrMaestroResults, s: DrMaestroScenario, metric: str, what: str, variant: str = "", experiment: str = "",
    change: str = "",
) -> Iterator[KeyedRow]:  # fmt: skip
    """Yield the differences and ratios of violations between the policies, for the rows of one definition."""
    table, plain, aware = TABLES[s.machines][1], *POLICIES[1:]
    of_plain, of_aware = (results.seeds(s, policy, metric, change, variant, experiment) for policy in (plain, aware))
    both = min(len(of_plain), len(of_aware))
    less = of_plain[:both] - of_aware[:both]
    yield (table, str(s), f"violations of DRMaestro minus network-aware; {what}"), Measured.over_seeds(less)
    for policy in (plain, aware):
        times = results.ratio(s, "firmament", policy, metric, change, variant, experiment)
        yield (table, str(s), f"violations of Firmament / {NAMES[policy]}; {what}"), Measured.over_seeds(times)


def switches(results: DrMaestroResults) -> dict[str, dict[Key, Measured]]:
    """Return switch -> claim -> measurement with only that switch on, for the claims that each switch affects."""
    by_switch: dict[str, dict[Key, Measured]] = {
        name: {} for name in (OUR_PHASE, FOUR_TIMES, THREE_TIMES, MOSTLY_ABOVE, TWICE_THE_LINKS)
    }
    for s in results.scenarios():
        by_switch[OUR_PHASE].update(_speedups(results, s, OUR_PHASE))
        if len(results.seeds(s, POLICIES[0], "makespan_s", experiment=MOSTLY_ABOVE)):
            by_switch[MOSTLY_ABOVE].update(_speedups(results, s, experiment=MOSTLY_ABOVE))
        for metric, what in COUNTS.items():
            by_switch[OUR_PHASE].update(_compared(results, s, metric, what, OUR_PHASE))
            for name, times in ((FOUR_TIMES, 4.0), (THREE_TIMES, 3.0)):
                by_switch[name].update(_compared(results, s, f"beyond:{BEYOND.index(times)}", what))
            if len(results.seeds(s, POLICIES[0], metric, experiment=MOSTLY_ABOVE)):
                by_switch[MOSTLY_ABOVE].update(_compared(results, s, metric, what, experiment=MOSTLY_ABOVE))
            if s == SCENARIOS[1] and len(results.seeds(s, POLICIES[0], metric, TWICE_THE_LINKS)):
                by_switch[TWICE_THE_LINKS].update(_compared(results, s, metric, what, change=TWICE_THE_LINKS))
    return by_switch


def gpus(results: DrMaestroResults, scenario: DrMaestroScenario) -> Iterator[KeyedRow]:
    """Measure Figure 4, 5, 7 or 9: GPUs in use before and after the warm-up jobs end."""
    artifact, condition = GPUS_IN[scenario], str(scenario)
    most, after = (results.seeds(scenario, "firmament", f"most_used_{when}") for when in ("before", "after"))
    if not len(most):
        return
    metric = "half of the GPUs minus Firmament's maximum before the warm-up ends"
    yield (artifact, condition, metric), Measured((0.5 - most).min())
    metric = "share of the GPUs that DRMaestro uses at most before the warm-up ends"
    yield (artifact, condition, metric), Measured(results.seeds(scenario, "drmaestro", "most_used_before").min())
    yield (artifact, condition, "share of the GPUs that Firmament uses at most after the warm-up"), Measured(after.min())
    unused = results.seeds(scenario, "drmaestro", "some_unused_before")
    metric = "share of the time before the warm-up ends in which DRMaestro leaves a GPU unused"
    yield (artifact, condition, metric), Measured.over_seeds(unused)


def figure_10(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure Figure 10: how much the network-aware policy improves execution times relative to the goals."""
    scenario = SCENARIOS[-1]
    plain, aware = (results.seeds(scenario, policy, "over_goal") for policy in POLICIES[1:])
    less = plain - aware if len(plain) == len(aware) else plain[:0]
    metric = "mean execution time over goal, DRMaestro minus network-aware"
    yield ("Figure 10", str(scenario), metric), Measured.over_seeds(less)


def execution(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure execution times."""
    for s in results.scenarios():
        for policy in POLICIES[:2]:
            seconds = Measured.over_seeds(results.seeds(s, policy, "execution_s"))
            yield ("Model", str(s), f"mean execution time, {NAMES[policy]}"), seconds


def variant(results: DrMaestroResults, artifact: str, name: str) -> Iterator[KeyedRow]:
    """Measure the makespans of the policies that a variant of the scheduler affects."""
    for s in results.scenarios():
        for key, measured in _over_firmament(results, artifact, s, name):
            if key[2].endswith(tuple(NAMES[policy] for policy in VARIANTS[name].policies)):
                yield key, measured


def experiments(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure the ratios of Tables 2 and 3 in the experiments that the paper's simulated settings omit."""
    for name in EXPERIMENTS:
        where = ("Experiments", f"{FIT_ON}, {name}")
        for policy in POLICIES[1:]:
            speedup = results.ratio(FIT_ON, "firmament", policy, experiment=name)
            yield (*where, f"makespan of Firmament / {NAMES[policy]}"), Measured.over_seeds(speedup)
            fewer = results.ratio(FIT_ON, "firmament", policy, "violations_local", experiment=name)
            metric = f"violations of Firmament / {NAMES[policy]}; {BY_LOCAL_TIME}"
            yield (*where, metric), Measured.over_seeds(fewer)
        aware = results.ratio(FIT_ON, "drmaestro", "network_aware", experiment=name)
        yield (*where, "makespan of DRMaestro / network-aware, minus 1"), Measured.over_seeds(aware - 1)


def warm_up_everywhere(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure the makespans with the warm-up jobs on every machine."""
    for s in results.scenarios(spread=True):
        yield from _over_firmament(results, "Warm-up on every machine", s)


def rounds(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure Figures 6 and 8: times of scheduling rounds, and flow problems solved."""
    for s, of in results.timed().items():
        figure, plain, ours = rounds_figure(s), of["firmament"], of["drmaestro"]
        slow = float(np.mean(ours["total_s"]) / np.mean(plain["total_s"]))
        yield (figure, str(s), "mean time of a round, DRMaestro / Firmament"), Measured(slow)
        solved = [run["solved"] / len(run["total_s"]) for run in (ours, plain)]
        yield (figure, str(s), "flow problems in a round, DRMaestro / Firmament"), Measured(solved[0] / solved[1])
        each = [run["solved"] / max(1, run["solving"]) for run in (ours, plain)]
        metric = "flow problems in a round that solves any, DRMaestro / Firmament"
        yield (figure, str(s), metric), Measured(each[0] / max(each[1], 1e-9))
        longest = max(max(run["total_s"]) for run in of.values())
        yield (figure, str(s), "1 s minus the longest round"), Measured(1.0 - longest)


def rounds_figure(scenario: DrMaestroScenario) -> str:
    """Return which figure of the paper shows the round times of a scenario."""
    return "Figure 6" if scenario.machines == 4 else "Figure 8"


def sensitivity(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure the smallest gains over all changes of the assumptions."""
    for s in results.changed():
        gains: dict[str, list[float]] = {}
        for change in CHANGES:
            plain, aware = (results.seeds(s, policy, "violations", change) for policy in POLICIES[1:])
            for metric, value in (
                ("makespan of Firmament / DRMaestro, minus 1", _speedup(results, s, change) - 1),
                ("makespan of DRMaestro / network-aware, minus 1", _gain_of_network(results, s, change) - 1),
                ("violations of DRMaestro minus network-aware", float((plain - aware).mean())),
            ):
                gains.setdefault(metric, []).append(value)
        for metric, values in gains.items():
            worst = int(np.argmin(values))
            yield (
                ("Sensitivity", str(s), f"minimum of all changes: {metric}"),
                Measured(values[worst], note=list(CHANGES)[worst]),
            )


def _speedup(results: DrMaestroResults, s: DrMaestroScenario, change: str) -> float:
    """Return the mean makespan of Firmament divided by that of DRMaestro under a change."""
    return float(results.ratio(s, "firmament", "drmaestro", change=change).mean())


def _gain_of_network(results: DrMaestroResults, s: DrMaestroScenario, change: str) -> float:
    """Return the mean makespan of DRMaestro divided by that of the network-aware policy under a change."""
    return float(results.ratio(s, "drmaestro", "network_aware", change=change).mean())


def explain(results: DrMaestroResults) -> Sequence[str]:
    """Describe which conclusions depend on the assumptions."""
    paragraphs = []
    for s in results.changed():
        lost = [f"'{change}'" for change in CHANGES if _speedup(results, s, change) <= 1.005]
        slower = [f"'{change}'" for change in CHANGES if _gain_of_network(results, s, change) < 1]
        none = "none of the changes"
        paragraphs.append(
            f"{s}: disaggregation does not shorten the makespan under {'; '.join(lost) or none}; the network-aware policy has "
            f"the longer makespan of the two under {'; '.join(slower) or none} ({len(CHANGES)} changes, one at a time)."
        )
    return paragraphs


def run_as(fit: str) -> str:
    """Return the change under which a fit runs; a factor that changes nothing maps to the run without a change."""
    return "" if FITS[fit] == Change() else fit


def fits(results: DrMaestroResults, scenario: DrMaestroScenario) -> dict[str, FloatArray]:
    """Return fit -> makespans of Firmament divided by those of DRMaestro, (n_seed,), for the fits that were run."""
    by_fit = {fit: results.ratio(scenario, "firmament", "drmaestro", change=run_as(fit)) for fit in FITS}
    return {fit: values for fit, values in by_fit.items() if len(values)}


def best_fit(results: DrMaestroResults) -> str:
    """Return the fit whose makespan ratio is nearest to the published one of `FIT_ON`; empty if none was run."""
    if not any(case.change in FITS for case in results.cases):
        return ""
    errors = {fit: abs(float(values.mean()) - SPEEDUP[FIT_ON][0]) for fit, values in fits(results, FIT_ON).items()}
    return min(errors, key=lambda fit: errors[fit], default="")


def _predicted(results: DrMaestroResults) -> dict[DrMaestroScenario, FloatArray]:
    """Return scenario -> (n_seed,) makespan ratios under the best fit; empty without one."""
    best = best_fit(results)
    by_scenario = {s: fits(results, s).get(best, np.empty(0)) for s in SCENARIOS}
    return {s: values for s, values in by_scenario.items() if len(values)}


def predictions(results: DrMaestroResults) -> Iterator[KeyedRow]:
    """Measure the makespan ratios under the fit, in the fitted setting and in the others."""
    metric = f"makespan of Firmament / DRMaestro, remote times fitted on {FIT_ON}"
    for s, values in _predicted(results).items():
        yield ("Prediction", str(s), metric), Measured.over_seeds(values)


def fit_table(results: DrMaestroResults) -> list[Table]:
    """Return a table of the fitted setting and the other settings, which are not held out; empty if no fit was run."""
    rows = []
    for s, values in _predicted(results).items():
        role = "fitted" if s == FIT_ON else "used to choose the assumed times"
        rows.append((str(s), role, f"{SPEEDUP[s][0]:.3f}", f"{float(np.mean(values)):.3f}", str(len(values))))
    ratios = ", ".join(f"{fit}: {float(values.mean()):.3f}" for fit, values in fits(results, FIT_ON).items())
    note = (
        f"Fitted: {best_fit(results)} (local times keep a mean of 75 s), the candidate nearest to the published ratio of "
        f"{FIT_ON}. Ratios of the candidates there: {ratios}."
    )
    header = ("setting", "role", "published Firmament / DRMaestro", "ours", "seeds")
    return [Table("Fitted to one setting, applied to three that chose the assumed times", header, rows, note)] if rows else []
