"""Every combination of shipped queue order, backfill, placement and allocation, with its engine and its time on one workload.

`python -m benchmarks combinations` measures, and `python -m benchmarks.combinations` rewrites the table of the page on
performance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.case import Figures, case, seconds
from benchmarks.features import engine_of
from benchmarks.shared_nodes import shared, shared_jobs
from benchmarks.workloads import perlmutter, perlmutter_jobs
from poolwise import registry
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.simulate import simulate
from poolwise.interfaces import BackfillPolicy, PlacementPolicy, QueuePolicy
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.order.affine import Affine, LogTerm
from poolwise.policies.order.priorities import FM, Capped
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.usage_based import UsageBased

JOBS = 200
PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "performance.md"
RESULTS = Path(__file__).parent / "results" / "combinations.json"
BEGIN, END = "<!-- combinations: python -m benchmarks.combinations -->\n", "<!-- end of combinations -->\n"
WITH_COLUMN = ("classes", "edf")
"""Orders that need a column of the workload; they are static."""
ON_RACKS = {"rack": "each rack", "system": "the system"}
ON_NODES = ("first_fit", "best_fit", "worst_fit", "packed", "topology_tree", "topology_none", "pooled")
BY_USE = "racks, memory by use"


def orders() -> Mapping[str, QueuePolicy]:
    """Return the shipped orders of jobs; orders that need settings get example settings."""
    examples: dict[str, QueuePolicy] = {"affine": Affine(logs=LogTerm(nodes=-1.0)), "capped": Capped(FM(), 3600.0)}
    return {name: examples.get(name) or registry.make("orders", name) for name in shipped("orders") if name not in WITH_COLUMN}


def backfills() -> Mapping[str, BackfillPolicy]:
    """Return the shipped backfills, and conservative backfilling that keeps its reservations."""
    named: dict[str, BackfillPolicy] = {name: registry.make("backfills", name) for name in shipped("backfills")}
    return named | {"conservative, kept": Conservative(keep_reservations=True)}


def shipped(group: str) -> list[str]:
    """Return the names that Poolwise registers itself; tests and users add others."""
    return [name for name in registry.names(group) if registry.find(group, name).__module__.startswith("poolwise.")]


def machines() -> Mapping[str, RunSpec]:
    """Return a run of the workload with each placement and allocation, under the default order and backfill."""
    racks = RunSpec(perlmutter_jobs(JOBS, 0.9), perlmutter(28), ListScheduler(FM()), RemoteMemory(), RemoteMemory())
    nodes = RunSpec(shared_jobs(JOBS, 20, 0.9), shared(20), ListScheduler(FM()), Ideal(), Ideal())
    on_racks = {f"racks, pools of {the}": registry.make("placements", "racks", scope=scope) for scope, the in ON_RACKS.items()}
    on_nodes = {f"shared nodes, {name}": registry.make("placements", name) for name in ON_NODES}
    by_use = registry.make("memory_uses", "phases").applied(racks.workload)
    return {
        **{name: _placed(racks, placement) for name, placement in on_racks.items()},
        BY_USE: replace(racks, workload=by_use, scheduler=UsageBased(FM())),
        **{name: _placed(nodes, placement) for name, placement in on_nodes.items()},
    }


def _placed(spec: RunSpec, placement: PlacementPolicy) -> RunSpec:
    return replace(spec, scheduler=replace(spec.scheduler, placement=placement))


def combinations() -> Iterator[tuple[str, str, str, RunSpec]]:
    """Yield (placement and allocation, order, backfill, run) of each combination."""
    for placed, spec in machines().items():
        for order_name, order in orders().items():
            for backfill_name, backfill in backfills().items():
                scheduler = replace(spec.scheduler, order=order, backfill=backfill)
                yield placed, order_name, backfill_name, replace(spec, scheduler=scheduler)


@case("combinations", on_request=True)
def measure() -> Figures:
    """Return the milliseconds of CPU time of each combination, excluding compilation."""
    figures = {}
    for placed, order, backfill, spec in combinations():
        if engine_of(spec) == "compiled":
            _milliseconds(spec)  # loads its kernel
            figures[key(placed, order, backfill)] = min(_milliseconds(spec) for _ in range(3))
        else:
            figures[key(placed, order, backfill)] = _milliseconds(spec)
    return figures


def key(placed: str, order: str, backfill: str) -> str:
    """Return the name of a combination in the results."""
    return f"{placed} | {order} | {backfill}"


def _milliseconds(spec: RunSpec) -> float:
    model, estimate = spec.model, spec.estimate
    return 1e3 * seconds(lambda: simulate(spec.workload, spec.machine, spec.scheduler, model=model, estimate=estimate))[0]


def table(figures: Mapping[str, float]) -> str:
    """Return the table of the page: milliseconds, in bold on the reference engine."""
    names = list(backfills())
    lines = [f"| placement and allocation | order | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    cells: dict[tuple[str, str], list[str]] = {}
    for placed, order, backfill, spec in combinations():
        time = f"{float(f'{figures[key(placed, order, backfill)]:.2g}'):g}"
        cells.setdefault((placed, order), []).append(time if engine_of(spec) == "compiled" else f"**{time}**")
    lines += [f"| {placed} | `{order}` | {' | '.join(row)} |" for (placed, order), row in cells.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Rewrite the table of the page from the results."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(json.loads(RESULTS.read_text())['figures'])}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
