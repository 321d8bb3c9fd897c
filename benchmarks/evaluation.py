"""Cost of one evaluation in an order search: 20,000 jobs under a candidate order, reusing columns of earlier evaluations."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.case import Figures, case, seconds
from poolwise import catalog, studies
from poolwise.files.scheduler import load_scheduler
from poolwise.files.study import SchedulerSection
from poolwise.search.evaluation import evaluate
from poolwise.studies.cells import Cell

TAU_S = 10.0
ORDERS = ("fm", "backlog", "fcfs", "sjf", "wfp3", "area")
GENERATED = 'generator = "{}", settings = {{ jobs = 20000, exact_load = true, load = {}, {} }}'
WORKLOADS = {
    "perlmutter": ("perlmutter-like", GENERATED.format("perlmutter_like", 1.0, "estimate_factor = 2.0")),
    "hungry": ("perlmutter-like", GENERATED.format("perlmutter_like", 0.9, "hungry = true")),
    "juwels": ("juwels-like", GENERATED.format("juwels_like", 1.0, "estimate_factor = 3.0")),
    "lublin": ("juwels-like", 'generator = "lublin", settings = { jobs = 20000, nodes = 960, load = 0.9 }'),
    "cerit": ("cerit-racks", 'trace = "catalog:cerit-2013.swf.gz", format = "swf", jobs = 17000'),
}
"""Name -> machine and workload: the kinds of the shipped search `orders`, at the maximum length of a search."""


def section(order: str) -> SchedulerSection:
    """Return a shipped scheduler as a section of a study."""
    read = load_scheduler(catalog.find("schedulers", f"{order}-easy"))
    return SchedulerSection(**{field: getattr(read, field) for field in SchedulerSection.model_fields})


def cell(name: str) -> Cell:
    """Return the cell of one of `WORKLOADS` as a search builds it."""
    machine, workload = WORKLOADS[name]
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(
            f'version = 1\nmachine = "catalog:{machine}"\nworkload = {{ {workload} }}\n'
            "[scheduler]\n[measure]\nbaseline = false\nwarm_up = 500\n"
        )
        (only,) = studies.load(study).cells
    return only


@case("evaluation", most_ms=("<=", 30.0))
def evaluation() -> Figures:
    """Return the CPU time, ms, of one evaluation of each order on each workload (least of 15), and the maximum time."""
    figures: Figures = {}
    for name in WORKLOADS:
        on = cell(name)
        for order in ORDERS:
            candidate = replace(on, scheduler=section(order))
            evaluate(candidate, TAU_S)
            spent, _ = seconds(lambda candidate=candidate: evaluate(candidate, TAU_S), repeat=15)
            figures[f"{name}_{order}_ms"] = 1e3 * spent
    return {**figures, "most_ms": max(figures.values())}
