"""Simulations of a plan's candidates, and verdicts on whether they meet the targets, by confidence intervals over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from poolwise.arrays import BoolArray, FloatArray
from poolwise.comparison.compare import compare_cells_with_today
from poolwise.comparison.ranking import State
from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.waits import PairedRun
from poolwise.files.document import Document
from poolwise.files.fields import Positive, Section
from poolwise.hashing import Json
from poolwise.metrics import Interval, Outcomes, Window, common_population, mean_interval, paired_block_bootstrap, summarize
from poolwise.metrics.measures import Deadlines
from poolwise.optimize.monotone import Element
from poolwise.plans.plan import ReportProgress
from poolwise.plans.sizes import Size
from poolwise.plans.targets import FAIRNESS, MISSED, Target, job_margins, needs_fcfs
from poolwise.runner import TaskRunner
from poolwise.studies.cell_simulation import Cells
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell, workload_of
from poolwise.studies.study import resolve

STATE_TEXT: Mapping[State, str] = {
    "keeps": "meets the targets",
    "breaks": "misses the targets",
    "undecided": "undecided",
}
Over = Literal["seeds", "jobs", "nothing"]


class CertaintySection(Section):
    """Required certainty of a verdict, and the budget of seeds."""

    over: Over = Field(
        default="seeds", description="intervals over seeds, over the jobs of one seed, or over nothing (the means decide)"
    )
    level: float = Field(default=0.95, gt=0, lt=1, description="probability that an interval covers the true value")
    min: Positive = Field(default=3, description="minimum number of seeds per candidate")
    max: Positive = Field(default=10, description="maximum number of seeds for a candidate near the target")

    @model_validator(mode="after")
    def _seeds(self) -> CertaintySection:
        if self.max < self.min:
            raise ValueError("max must not be less than min")
        if self.over == "seeds" and self.min < 2:
            raise ValueError("an interval over seeds needs min = 2 or more")
        return self

    @property
    def seeds(self) -> tuple[int, int]:
        """Minimum and maximum number of seeds per candidate; (1, 1) for intervals over jobs."""
        return (1, 1) if self.over == "jobs" else (self.min, self.min if self.over == "nothing" else self.max)

    @property
    def look_level(self) -> float:
        """Level of one interval, corrected (Bonferroni) for the tests repeated after each additional seed."""
        least, most = self.seeds
        return 1.0 - (1.0 - self.level) / (most - least + 1)


@dataclass(frozen=True)
class CandidateVerdict:
    """Verdict on whether a candidate meets the targets.

    Attributes
    ----------
    state : keeps, breaks, or undecided after the last seed
    seeds : number of simulated seeds
    margins : one per target: mean margin with its interval; empty with unfinished jobs
    values : one per target: mean of the metric; NaN with unfinished jobs, since the populations would differ
    unfinished : number of jobs that the largest candidate finishes and this one cannot run; if there are any, the state is
    breaks
    """

    state: State
    seeds: int
    margins: tuple[Interval, ...]
    values: tuple[float, ...]
    unfinished: int


@dataclass
class CandidateRuns:
    """Simulations of candidates, which are identified by their position in the grid of sizes; all use the same seeds.

    Attributes
    ----------
    document : the plan without [plan]: a study of one run, with its machine resolved
    sizes, targets, certainty : sections of the plan
    reference : dotted path -> value of the machine that relative targets refer to; empty without one
    runner : runs the cells and stores their records
    report : receives a progress line for each candidate
    tau_s : bound of the bounded slowdown, seconds
    left_out : ids of jobs that are removed from every run
    simulated : key -> cell of every required run, cached or new
    """

    document: Document
    sizes: Sequence[Size]
    targets: tuple[Target, ...]
    certainty: CertaintySection
    reference: Mapping[str, Any]
    runner: TaskRunner[CellStore]
    report: ReportProgress
    tau_s: float
    left_out: tuple[int, ...] = ()
    _cells: dict[Element | None, tuple[Cell, ...]] = field(default_factory=dict, init=False)
    _metrics: dict[str, dict[str, float]] = field(default_factory=dict, init=False)
    _common: dict[int, BoolArray] = field(default_factory=dict, init=False)
    _today: dict[str, Cell] = field(default_factory=dict, init=False)
    _reported: set[Element] = field(default_factory=set, init=False)
    simulated: dict[str, Cell] = field(default_factory=dict, init=False)

    def without(self, ids: tuple[int, ...]) -> CandidateRuns:
        """Return runs of the same candidates without some jobs; progress lines state only how many are removed."""
        self.report(f"repeating the search without {len(ids)} of the largest jobs")
        return replace(self, runner=replace(self.runner, progress=None), report=lambda line: None, left_out=ids)

    @property
    def store(self) -> CellStore:
        """Store of the runs."""
        return self.runner.store

    @property
    def largest(self) -> Element:
        """The candidate that has the largest value of every size."""
        return tuple(len(size.written) - 1 for size in self.sizes)

    @property
    def judged(self) -> int:
        """Number of candidates that were judged."""
        return len(self._reported)

    def judge(self, element: Element, targets: Sequence[Target] | None = None) -> CandidateVerdict:
        """Simulate seed after seed until it is clear whether a candidate meets `targets`, by default those of the plan."""
        targets = self.targets if targets is None else targets
        least, most = self.certainty.seeds
        for seeds in range(least, most + 1):
            self._run(element, seeds)
            verdict = self._verdict(element, targets, seeds)
            if verdict.state != "undecided":
                break
        if element not in self._reported:
            self._reported.add(element)
            text = f"{STATE_TEXT[verdict.state]} ({verdict.seeds} seed{'' if verdict.seeds == 1 else 's'})"
            self.report(f"[{len(self._reported)}] {self.label(element)}: {text}")
        return verdict

    def label(self, element: Element) -> str:
        """Describe a candidate: the value of each size."""
        return " and ".join(size.phrase(k) for size, k in zip(self.sizes, element, strict=True))

    def sizes_of(self, element: Element) -> Json:
        """Return path -> value of each size of a candidate, as plain data."""
        return {size.key: size.written[k] for size, k in zip(self.sizes, element, strict=True)}

    @property
    def relative(self) -> bool:
        """True if any target refers to the reference."""
        return any(target.relative for target in self.targets)

    def values(self, element: Element, metric: str, seeds: int) -> FloatArray:
        """Return the values of a metric of a simulated candidate, (seeds,)."""
        return np.array([self._measured(element, seed)[metric] for seed in range(seeds)])

    def margins(self, element: Element, target: Target, seeds: int) -> FloatArray:
        """Return the margins of a simulated candidate, (seeds,), or those of its jobs, (n_job,), for intervals over jobs."""
        if self.certainty.over == "jobs":
            reference = self._outcomes(None, 0) if target.relative else None
            series = job_margins(target, self._outcomes(element, 0), reference, self.population(0), self.tau_s)
            if series is not None:
                return series
        values = self.values(element, target.metric, seeds)
        references = [self._measured(None, seed)[target.metric] if target.relative else 1.0 for seed in range(seeds)]
        return np.array([target.margin(a, b) for a, b in zip(values.tolist(), references, strict=True)])

    def interval(self, margins: FloatArray) -> Interval:
        """Return a confidence interval of the mean of margins, or of differences between margins."""
        level = self.certainty.look_level
        if self.certainty.over == "seeds":
            return mean_interval(margins, level)
        if self.certainty.over == "jobs" and len(margins) > 1:
            return paired_block_bootstrap(margins, level=level)
        mean = float(margins.mean())
        return Interval(mean, mean, mean, level, len(margins))

    def cells(self, element: Element | None) -> tuple[Cell, ...]:
        """Return one cell per seed of a candidate, or of the reference (None)."""
        if element not in self._cells:
            _, most = self.certainty.seeds
            settings: dict[str, Any] = {"seeds": {"values": list(range(most))}}
            settings["measure.baseline"] = needs_fcfs(self.targets)
            if element is None:
                settings |= self.reference
            else:
                settings["vary"] = {size.key: [size.written[k]] for size, k in zip(self.sizes, element, strict=True)}
            study = resolve(self.document, settings)
            cells = study.cells
            self._cells[element] = tuple(cell.without(self.left_out) for cell in cells) if self.left_out else cells
            self._today = {**self._today, **study.today}
        return self._cells[element]

    def today(self, element: Element, seed: int = 0) -> Cell | None:
        """Return the cell of today's machine with which a candidate is compared; None if the plan has no `[today]`."""
        return self._today.get(self.cells(element)[seed].key)

    def paired(self, element: Element, seeds: int) -> list[PairedRun]:
        """Pair the runs of a candidate with those of today's machine, which `compare_with_today` must have simulated."""
        today = [self.today(element, seed) for seed in range(seeds)]
        return [
            (self._outcomes(element, seed), None if cell is None else self.store.outcomes(cell), self.population(seed))
            for seed, cell in enumerate(today)
        ]

    def value_today(self, element: Element, metric: str, seeds: int) -> float | None:
        """Return the mean of a metric in today's runs, already simulated; None if their jobs differ, or it needs a baseline."""
        if metric.endswith(FAIRNESS):
            return None
        values = []
        for seed in range(seeds):
            cell = self.today(element, seed)
            if cell is None or (self.population(seed) & ~self.store.outcomes(cell).finished).any():
                return None
            values.append(self._measures(cell, seed, baseline=False)[metric])
        return float(np.mean(values))

    def compare_with_today(self, element: Element, seeds: int) -> Comparison | None:
        """Compare a simulated candidate with today, simulating today if necessary; None if the plan has no `[today]`."""
        cells = self.cells(element)[:seeds]
        if not self._today:
            return None
        self.runner.run(Cells(), [self._today[cell.key] for cell in cells])
        return compare_cells_with_today(cells, self._today, self.store)

    def _run(self, element: Element, seeds: int) -> None:
        """Simulate the first seeds of a candidate, and of the runs with which it is compared."""
        required: dict[str, Cell] = {}
        with_reference = [None] if self.relative else []
        for which in (element, self.largest, *with_reference):
            for cell in self.cells(which)[:seeds]:
                for compared in (cell, cell.baseline()) if needs_fcfs(self.targets) else (cell,):
                    required[compared.key] = compared
        missing = [cell for key, cell in required.items() if key not in self.simulated]
        self.runner.run(Cells(), missing)
        self.simulated |= required

    def _verdict(self, element: Element, targets: Sequence[Target], seeds: int) -> CandidateVerdict:
        unfinished = int(self.values(element, "unfinished", seeds).max())
        if unfinished:
            return CandidateVerdict("breaks", seeds, (), (np.nan,) * len(targets), unfinished)
        if not self.population(0).any():
            runs = "the largest candidate and the reference" if self.relative else "the largest candidate"
            remedy = "enlarge the machine or its largest sizes, or shorten the warm-up"
            raise self.document.error(("plan",), f"no job finishes on {runs} after the warm-up", remedy)
        values = tuple(float(self.values(element, target.metric, seeds).mean()) for target in targets)
        for target, value in zip(targets, values, strict=True):
            if element == self.largest and np.isnan(value):
                message = f"metric '{target.metric}' is undefined in these runs"
                raise self.document.error(("plan", "target"), message, "choose another metric")
        intervals = tuple(self.interval(self.margins(element, target, seeds)) for target in targets)
        state: State = "undecided"
        if any(np.isnan(interval.mean) or interval.high < 0 for interval in intervals):
            state = "breaks"
        elif all(interval.low >= 0 for interval in intervals):
            state = "keeps"
        return CandidateVerdict(state, seeds, intervals, values, 0)

    def _outcomes(self, element: Element | None, seed: int) -> Outcomes:
        return self.store.outcomes(self.cells(element)[seed])

    def population(self, seed: int) -> BoolArray:
        """Return the jobs after the warm-up that finish under the largest candidate (and the reference), as a mask (n_job,)."""
        if seed not in self._common:
            runs = [self._outcomes(self.largest, seed)]
            if self.relative:
                runs.append(self._outcomes(None, seed))
            self._common[seed] = common_population(runs, self.cells(self.largest)[seed].warm_up)
        return self._common[seed]

    def _measured(self, element: Element | None, seed: int) -> dict[str, float]:
        return self._measures(self.cells(element)[seed], seed, baseline=needs_fcfs(self.targets))

    def _measures(self, cell: Cell, seed: int, *, baseline: bool) -> dict[str, float]:
        """Compute every metric of a run, fairness only with a `baseline`, and its number of unfinished jobs."""
        if cell.key not in self._metrics:
            outcomes, population = self.store.outcomes(cell), self.population(seed)
            summary = summarize(
                outcomes,
                warm_up=cell.warm_up,
                population=population,
                window=Window.of(outcomes, cell.warm_up),
                baseline=self.store.outcomes(cell.baseline()) if baseline else None,
                tau_s=self.tau_s,
                measures=(Deadlines(),) if any(target.metric == MISSED for target in self.targets) else (),
                workload=lambda: workload_of(cell),
            )
            summary["unfinished"] = float((population & ~outcomes.finished).sum())
            self._metrics[cell.key] = summary
        return self._metrics[cell.key]
