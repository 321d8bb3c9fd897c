"""Runs of the Fair Memory reproduction: machines, the cells of their studies, and their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.files.component import Component
from poolwise.files.study import PerformanceSection
from poolwise.hashing import Json, canonical
from poolwise.metrics import Outcomes, Window, paper_population, summarize
from poolwise.metrics.memory import degradation, memory_utilization, utilization_histogram
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.metrics.window import after_warm_up
from poolwise.model import Schedule
from poolwise.model.rules import PoolScope
from poolwise.performance.remote_memory import FAR_NS
from poolwise.studies.cells import Cell, GeneratorSource
from poolwise.studies.study import load
from poolwise_reproductions import catalog
from poolwise_reproductions.cases import CellCase
from poolwise_reproductions.fair_memory.readings import BACKFILLS, BackfillName
from poolwise_reproductions.fair_memory.traces import drawn_trace

ORDERS = ("fcfs", "sjf", "wfp3", "f1", "fair", "fm")
INVERTED_F1 = "f1_as_printed"
FAIRNESS = {
    "D": "discrimination_s",
    "MD": "marginal_discrimination_s",
    "D10": "discrimination_10pct_s",
    "MD10": "marginal_discrimination_10pct_s",
}
EXTREME = {"D20": "discrimination_20pct_s", "MD20": "marginal_discrimination_20pct_s"}
"""Metrics that section II-C defines and Figure 8 does not show."""

SAMPLES = ("slowdown", "memory", "degradation")
"""Distributions of Figures 9, 11 and 12: distributions over jobs, and shares of the time in 10 % bins."""
CDF = "slowdown_cdf"
"""Name of the shares of jobs with at most each bounded slowdown of `SLOWDOWNS`, which every seed of Figure 9 has."""
SLOWDOWNS = np.geomspace(1.0, 1e5, 501)
SystemLatency = Literal["mix", "any", "all"]
LATENCIES: Mapping[SystemLatency, tuple[str, Mapping[str, Any]]] = {
    "mix": ("280 ns outside the rack", {}),
    "any": ("280 ns once any leaves the rack", {"spread": "paper"}),
    "all": ("280 ns for all remote memory", {"near_ns": FAR_NS}),
}
"""Latency of remote memory in the scope system -> label and settings of the model."""
PRINTED_LATENCY: SystemLatency = "all"
"""Latency of the scope system in section III-A.3: one slowdown distribution, "depending on the disaggregation scope"."""


@dataclass(frozen=True)
class PaperMachine:
    """Machine of Table I.

    Pool sizes are in TB per rack. `limited` and `sufficient` are the pools of Figure 9, and `optimum` is the size that Figure
    10 finds. From `plateau` upward, the curve of Figure 10 is flat.
    """

    generator: str
    sizes: tuple[int, ...]
    limited: int
    sufficient: int
    optimum: int
    plateau: int


MACHINES: Mapping[str, PaperMachine] = {
    "perlmutter": PaperMachine("perlmutter_like", tuple(range(4, 49, 4)), 16, 32, 28, 20),
    "juwels": PaperMachine("juwels_like", tuple(range(2, 25, 2)), 6, 12, 6, 6),
}


@lru_cache(maxsize=64)
def cell_of(machine: str, size_tb: int) -> Cell:
    """Return the cell of a study file with pools of a size in each rack; size 0 means no pools and 512 GB in every node."""
    overrides = {"scheduler.order": "fm", "machine.pool.memory.memory": f"{size_tb or 1} TiB", "seeds.count": 1}
    study = load(catalog.find("studies", f"fair-memory-{machine}.toml"), overrides)
    return study.cells[0] if size_tb else study.memory_baselines[0]


@dataclass(frozen=True)
class FairMemoryCase(CellCase):
    """One run, the unit that is cached for resuming.

    `size_tb` 0 is the machine with 512 GB in every node. `trace` names one of `TRACES`; empty for the generated workload.
    `curve` names the curve of the slowdown caused by remote memory, `latency` one of `LATENCIES`. The measurement ends when
    the job of `last` starts: the job that starts last, or the job submitted last.
    """

    machine: str
    seed: int
    order: str
    size_tb: int
    backfill: BackfillName = "easy"
    scope: PoolScope = "rack"
    trace: str = ""
    curve: Literal["quantile", "quadratic"] = "quantile"
    latency: SystemLatency = "mix"
    last: Literal["started", "submitted"] = "started"

    def group(self) -> str:
        """Return the inputs of the baselines, the runs without backfilling: cases that share them run in one process."""
        return str(self.without_backfill())

    def without_backfill(self) -> FairMemoryCase:
        """Return the baseline of fairness: first come, first served without backfilling on the same machine."""
        return replace(self, order="fcfs", backfill="none")

    def cell(self) -> Cell:
        """Return the cell of the machine's study with the settings of the case."""
        cell = cell_of(self.machine, self.size_tb)
        order = Component.of("f1", {"as_printed": True}) if self.order == INVERTED_F1 else Component(name=self.order)
        changes = {"order": order, "backfill": BACKFILLS[self.backfill], "scope": self.scope}
        curve = {} if self.curve == "quantile" else {"curve": self.curve}
        model = Component.of("remote_memory", {**curve, **LATENCIES[self.latency][1]})
        generator = MACHINES[self.machine].generator
        jobs = GeneratorSource(generator, canonical({"seed": self.seed}), 0, None)
        return replace(
            cell,
            seed=self.seed,
            workload=drawn_trace(self.trace, generator, self.seed) if self.trace else jobs,
            scheduler=cell.scheduler.model_copy(update=changes),
            performance=PerformanceSection(model=model),
        )

    def measured(self, schedule: Schedule) -> Json:
        """Return the metrics; "all_" marks metrics of all jobs, and "plain_" fairness compared with 512 GB in every node."""
        outcomes, warm_up = Outcomes.of(schedule), self.cell().warm_up
        fair = self.without_backfill()
        window, after = self._window(outcomes), after_warm_up(outcomes, warm_up)
        paper, whole = paper_population(outcomes, warm_up, window), after & outcomes.finished

        def against(baseline: FairMemoryCase, population: BoolArray) -> dict[str, float]:
            return summarize(
                outcomes, warm_up=warm_up, population=population, window=window, baseline=baseline_outcomes(baseline)
            )

        plain = against(replace(fair, size_tb=0, scope="rack"), paper)
        slowdown, degraded = bounded_slowdown(outcomes)[whole], degradation(outcomes)[whole]
        bins = utilization_histogram(memory_utilization(outcomes, window)).share
        return {
            **against(fair, paper),
            "all_mean_bounded_slowdown": float(slowdown.mean()),
            "all_p999_bounded_slowdown": float(np.quantile(slowdown, 0.999)),
            **{f"plain_{name}": plain[name] for name in (*FAIRNESS.values(), *EXTREME.values(), "compared_jobs")},
            "share_150pct_degradation": float((degraded >= 1.5).mean()),
            "modal_memory_bin": 5.0 + 10.0 * float(np.argmax(bins)),
            "rejected": float(len(outcomes) - np.count_nonzero(outcomes.finished)),
            **self._cdf(slowdown),
            **self._samples(slowdown, degraded, bins),
        }

    def _window(self, outcomes: Outcomes) -> Window:
        """Return the window of the measurement."""
        window = Window.of(outcomes, self.cell().warm_up)
        if self.last == "started":
            return window
        return replace(window, end=max(window.begin, int(outcomes.start[outcomes.finished][-1])))

    def _cdf(self, slowdown: FloatArray) -> dict[str, Any]:
        """Return the distribution of the bounded slowdown if Figure 9 shows the run."""
        paper = MACHINES[self.machine]
        if self.order != "fm" or self.trace or self.size_tb not in (0, paper.limited, paper.sufficient):
            return {}
        return {CDF: (np.searchsorted(np.sort(slowdown), SLOWDOWNS, side="right") / len(slowdown)).tolist()}

    def _samples(self, slowdown: FloatArray, degraded: FloatArray, bins: FloatArray) -> dict[str, Any]:
        """Return the distributions of Figures 9, 11 and 12 of the first seed: of jobs, and shares of the time in 10 % bins."""
        paper, samples = MACHINES[self.machine], {}
        printed = "mix" if self.scope == "rack" else PRINTED_LATENCY
        if self.order != "fm" or self.seed or self.trace or self.latency != printed:
            return {}
        if self.size_tb in (0, paper.limited, paper.sufficient):
            samples["slowdown"] = slowdown.tolist()
        if self.scope == "rack" and self.size_tb in (0, paper.optimum):
            samples |= {"memory": bins.tolist(), "degradation": degraded.tolist()}
        return samples


@lru_cache(maxsize=2)
def baseline_outcomes(case: FairMemoryCase) -> Outcomes:
    """Return the outcomes of a baseline run; they are cached in the process for the next case of its group."""
    return Outcomes.of(case.simulate())
