"""Random deployments and traces, and a naive dispatcher that examines every task and every unit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import ceil

import numpy as np

from poolwise.engines import simulate
from poolwise.interfaces import PlacementPolicy
from poolwise.performance.affinity import Affinity
from poolwise.performance.ideal import Ideal
from poolwise.performance.transfer import Transfer
from poolwise.random import uniform
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim
from tests.helpers.random_studies import difference

POLICIES: list[tuple[str, dict[str, object]]] = [
    ("flat", {}),
    ("high", {}),
    ("high", {"tie": "random"}),
    ("pref", {}),
    ("pref", {"reading": "first"}),
    ("closer_to_data", {}),
    ("closer_to_data", {"tie": "random"}),
    ("earliest_finish", {}),
    ("delay", {}),
    ("delay", {"patience": 0.25}),
]
TIERED = [entry for entry in POLICIES if entry[0] not in ("earliest_finish", "delay")]


def policy_of(entry: tuple[str, dict[str, object]]) -> PlacementPolicy:
    policy: PlacementPolicy = make("placements", entry[0], **entry[1])
    return policy


@dataclass(frozen=True, eq=False)
class Study:
    """A random study; `rates` has the form returned by `read_affinity`."""

    deployment: vinesim.UnitList
    tasks: vinesim.TaskList
    rates: np.ndarray
    gap: float

    def case(self, **options: object) -> vinesim.VineSimCase:
        return vinesim.VineSimCase.of(self.deployment, self.tasks, self.rates, self.gap, **options)


GRAPHS = ("chains", "diamonds", "fork-join", "random")


def dependent_study(seed: int, shape: str, most: int = 40) -> Study:
    """Draw a study whose tasks wait for others, within their job or across jobs, some of them listed later in the trace."""
    base, g = study(seed, most), np.random.default_rng(10_000 + seed)
    n = len(base.tasks)
    order = np.arange(n) if g.random() < 0.5 else g.permutation(n)  # position in the graph -> task
    predecessors: list[list[int]] = [[] for _ in range(n)]
    for k in range(1, n):
        match shape:
            case "chains":
                before = [k - 1] if k % 5 else []
            case "diamonds":
                before = {0: [], 1: [k - 1], 2: [k - 2], 3: [k - 2, k - 1]}[k % 4]
            case "fork-join":
                head = k - k % 8
                before = [] if k == head else list(range(head + 1, k)) if k % 8 == 7 else [head]
            case _:
                before = g.choice(k, int(g.integers(0, min(k, 4) + 1)), replace=False).tolist()
        predecessors[order[k]] = [int(order[position]) for position in before]
    tasks = vinesim.TaskList.of(base.tasks.table, predecessors)
    return Study(base.deployment, tasks, base.rates, base.gap)


def study(seed: int, most: int = 60) -> Study:
    """Draw up to nine units of three types in three racks, some types unable to run some tasks, with many ties."""
    g = np.random.default_rng(seed)
    kinds = [0, 2, 3]
    units = [(int(g.choice(kinds)), int(g.integers(3)), int(g.integers(3))) for _ in range(g.integers(3, 10))]
    units += [(kind, 0, 0) for kind in kinds]  # so that every type exists
    rates = np.zeros((6, 7))
    rates[np.ix_(kinds, [0, 1, 2])] = g.choice([0.0, 1.0, 2.0, 3.0, 7.0], (3, 3), p=[0.2, 0.3, 0.2, 0.2, 0.1])
    rates[0, :3] = np.maximum(rates[0, :3], 1.0)
    rows, total = [], int(g.integers(1, most))
    while len(rows) < total:
        kind, job = int(g.integers(3)), len(rows)
        able = [k for k in kinds if rates[k, kind] > 0]
        for _ in range(g.integers(1, 6)):
            size = int(g.choice([0, 0, 10, 1000, 5000]))
            place = int(g.integers(4)), int(g.integers(3))
            rows.append((kind, size, *place, int(g.choice([1, 10, 30, 100])), int(g.choice([*able, 5])), job))
    return Study(vinesim.UnitList.of(units), vinesim.TaskList.of(rows), rates, float(g.choice([0, 1, 5, 20, 60])))


@dataclass(frozen=True, eq=False)
class Naive:
    """A naive simulation of a study, with the choices of a policy at an instant."""

    study: Study
    policy: PlacementPolicy
    seed: int = 0
    classes: Mapping[int, int] = field(default_factory=dict)  # job -> class, 0 before 1; one class if not given

    def __post_init__(self) -> None:
        d, table = self.study.deployment, self.study.tasks.table.tolist()
        units = list(zip(d.type.tolist(), d.x.tolist(), d.y.tolist(), strict=True))
        jobs = list(dict.fromkeys(row[6] for row in table))
        graph = self.study.tasks.graph
        before = [set() if graph is None else set(graph.predecessors(k)) for k in range(len(table))]
        after = [{k for k, names in enumerate(before) if task in names} for task in range(len(table))]
        row = [0]  # of the workload: a stretch of equal tasks
        for earlier, later in pairwise(zip(table, before, after, strict=True)):
            row.append(row[-1] + (earlier != later))
        order = sorted(range(len(units)), key=lambda u: (units[u][1:], u))
        seen = list(dict.fromkeys(kind for kind, _, _ in units))
        for name, value in {
            "table": table,
            "units": units,
            "arrival": [ceil(Fraction(self.study.gap) * 1000 * jobs.index(task[6])) for task in table],
            "before": before,
            "draw": [float(uniform(self.seed, "dispatch", r, k - row.index(r))[0]) for k, r in enumerate(row)],
            "able": [[u for u in order if self.rate(units[u], task) > 0] for task in table],
            "by_type": sorted(order, key=lambda u: seen.index(units[u][0])),
        }.items():
            object.__setattr__(self, name, value)

    def rate(self, unit: tuple[int, int, int], task: list[int]) -> float:
        return float(self.study.rates[unit[0], task[0]])

    def response(self, task: int, u: int) -> int:
        _, size, x, y, operations, _, _ = self.table[task]
        _, ux, uy = self.units[u]
        hops = 0 if size == 0 or (x, y) == (ux, uy) else 2 if x == ux else 4
        transfer = ceil(Fraction(size * 1000, 1250 if hops == 2 else 125)) + 200 * (hops - 1) if hops else 0
        return transfer + max(1, ceil(Fraction(operations * 1000) / Fraction(self.rate(self.units[u], self.table[task]))))

    def run(self) -> list[tuple[int, int, int]]:
        """Return (start, end, unit) of each task, ns, by examining every task and unit at every instant."""
        done = [(-1, -1, -1)] * len(self.table)
        busy: dict[int, int] = {}
        waiting: list[int] = []
        pending, wake, now = set(range(len(self.table))), 0, -1
        submitted = list(self.arrival)
        while pending or busy or waiting:
            later = [submitted[task] for task in pending if submitted[task] > now]
            now = min([*later, *busy.values(), *([wake] if wake > now else [])])
            busy = {u: end for u, end in busy.items() if end > now}
            over = {task for task, (_, end, _) in enumerate(done) if 0 <= end <= now}
            ready_now = [task for task in sorted(pending) if submitted[task] <= now and self.before[task] <= over]
            pending.difference_update(ready_now)
            for task in ready_now:
                self.arrival[task] = now
            waiting += ready_now
            waiting.sort(key=lambda task: (self.classes.get(self.table[task][6], 0), self.arrival[task], task))
            ready = {u: busy.get(u, now) for u in range(len(self.units))}  # includes tasks that wait for a busy unit
            wakes = []
            for task in list(waiting):
                u, until = self.pick(task, now, ready)
                wakes += [until] if until > now else []
                if u is None:
                    continue
                if ready[u] == now:
                    waiting.remove(task)
                    busy[u] = now + self.response(task, u)
                    done[task] = (now, busy[u], u)
                ready[u] += self.response(task, u)
            wake = min(wakes, default=0)
        return done

    def pick(self, task: int, now: int, ready: dict[int, int]) -> tuple[int | None, int]:
        """Return (unit or None, time of the next attempt)."""
        policy, able = self.policy, self.able[task]
        idle = [u for u in able if ready[u] == now]
        name = type(policy).__name__
        if name == "EarliestFinish":
            return min(able, key=lambda u: (ready[u] + self.response(task, u), able.index(u))), 0
        if not idle:
            return None, 0
        if name == "Delay":
            best = min(idle, key=lambda u: (self.response(task, u), able.index(u)))
            stake = self.response(task, best) - min(self.response(task, u) for u in able)
            until = self.arrival[task] + ceil(policy.patience * stake)
            return (best, 0) if until <= now else (None, until)
        for tier in self.tiers(name, task, idle):
            if tier:
                any_ = sorted(tier, key=self.by_type.index)
                return (tier[0] if policy.tie == "order" else any_[int(self.draw[task] * len(tier))]), 0
        return None, 0

    def tiers(self, name: str, task: int, idle: list[int]) -> list[list[int]]:
        _, _, x, y, _, wanted, _ = self.table[task]
        if name == "CloserToData":
            return [[u for u in idle if self.units[u][1:] == (x, y)], [u for u in idle if self.units[u][1] == x], idle]
        if name == "High":
            best = max(self.rate(self.units[u], self.table[task]) for u in idle)
            return [[u for u in idle if self.rate(self.units[u], self.table[task]) == best]]
        if name == "Pref" and wanted != 5:
            liked = [u for u in idle if self.units[u][0] == wanted]
            return [liked] if self.policy.reading == "only" else [liked, [u for u in idle if u not in liked]]
        return [idle]


def compare(seed: int, most: int = 60, shape: str = "") -> None:
    """Check that both engines agree under all tiered policies, on one random study, with a task graph if a shape is given."""
    this = dependent_study(seed, shape, most) if shape else study(seed, most)
    case = this.case(network=vinesim.Bandwidths(port=1250, uplink=100 + seed % 3))
    model = [case.model, case.model, Affinity(), Ideal(), Transfer(local=seed % 5)][seed % 5]
    for entry in TIERED:
        scheduler = Dispatch(policy_of(entry))
        runs = [
            simulate(case.workload, case.machine, scheduler, model=model, seed=seed, engine=engine).schedule
            for engine in ("reference", "compiled")
        ]
        assert difference(*runs) == "", (seed, entry)
