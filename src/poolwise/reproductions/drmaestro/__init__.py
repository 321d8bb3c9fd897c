"""DRMaestro, reproduced: makespans and violated goals of four sizes, GPUs in use, scheduler time, and what is assumed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from poolwise.registry import register
from poolwise.reproductions.drmaestro import claims, figures
from poolwise.reproductions.drmaestro.cells import POLICIES, SCENARIOS, DrMaestroCase, DrMaestroScenario, measure_rounds
from poolwise.reproductions.drmaestro.cells import measure_case as measure_case
from poolwise.reproductions.drmaestro.changes import CHANGES
from poolwise.reproductions.kept import measure_all
from poolwise.reproductions.reproduction import Reproduction, ReproductionResult
from poolwise.trials import Progress


@dataclass(frozen=True)
class DrMaestroPlan:
    """What is run.

    Attributes
    ----------
    seeds : seeds of each scenario
    spread : scenarios with the warm-up jobs on every machine, and with how many seeds
    timed : scenarios whose rounds are timed, one seed
    changed : scenarios in which the assumptions are changed, and with how many seeds
    """

    seeds: dict[DrMaestroScenario, int]
    spread: tuple[DrMaestroScenario, ...]
    spread_seeds: int
    timed: tuple[DrMaestroScenario, ...]
    changed: tuple[DrMaestroScenario, ...]
    change_seeds: int

    def cases(self) -> list[DrMaestroCase]:
        """Every case, the long ones first so that no worker is left with one at the end."""
        runs = [(scenario, seed) for scenario in reversed(SCENARIOS) for seed in range(self.seeds[scenario])]
        runs += [(replace(s, spread=True), seed) for s in reversed(self.spread) for seed in range(self.spread_seeds)]
        found = [DrMaestroCase(scenario, policy, seed) for scenario, seed in runs for policy in reversed(POLICIES)]
        varied = [(s, change, seed) for s in self.changed for change in CHANGES for seed in range(self.change_seeds)]
        return found + [DrMaestroCase(s, policy, seed, change) for s, change, seed in varied for policy in POLICIES]

    def timings(self) -> list[DrMaestroCase]:
        """Cases whose rounds are timed."""
        return [DrMaestroCase(scenario, policy, 0) for scenario in self.timed for policy in POLICIES]


FULL = DrMaestroPlan(dict.fromkeys(SCENARIOS, 10), SCENARIOS, 3, SCENARIOS, (SCENARIOS[0], SCENARIOS[2]), 3)
QUICK = DrMaestroPlan({**dict.fromkeys(SCENARIOS, 2), SCENARIOS[3]: 1}, SCENARIOS[:1], 2, SCENARIOS[2:3], SCENARIOS[:1], 1)


@register("reproductions", "drmaestro")
@dataclass(frozen=True)
class DRMaestro(Reproduction):
    """Tables 2 to 5 and Figures 4 to 10 of Amaral et al. as ratios, on jobs whose times are mostly assumed."""

    title: ClassVar[str] = "Disaggregated GPUs by minimum-cost flow (DRMaestro)"
    paper: ClassVar[str] = (
        "Amaral et al., DRMaestro: orchestrating disaggregated resources on virtualized data-centers, Journal of Cloud "
        "Computing 10:22, 2021"
    )

    def run(
        self, out: Path, *, quick: bool, jobs: int, progress: Progress | None = None, figure: str = ""
    ) -> ReproductionResult:
        """Measure everything; see `Reproduction`."""
        plan = QUICK if quick else FULL
        cases = measure_all(plan.cases(), measure_case, out, jobs, progress=progress)
        rounds = measure_all(plan.timings(), measure_rounds, out / "times", 1, progress=progress)  # one by one: they are timed
        results = claims.DrMaestroResults(cases, rounds)
        return ReproductionResult(
            claims.measure(results), figures.draw(results), NOTES, claims.explain(results), figures.tables(results)
        )


NOTES = (
    "Times, network use and sensitivities of the jobs are assumed but for two stretches read off the paper's Figure 3; see "
    "catalog/device_profiles/rodinia.csv, where everything assumed is marked. Ratios are judged, absolute values only shown.",
    "The warm-up jobs hold every core of half of the machines until 2000 s (4 machines, as published) or 700 s (assumed).",
    "The published numbers of violations fit no single definition: 4 machines with 128 jobs need queueing excluded, 128 "
    "machines with 4096 jobs need it included. Both are shown; judged is that the network-aware policy has no more than the "
    "plain one.",
    "A scheduling round is made at every arrival and end; the paper does not print its interval.",
)
