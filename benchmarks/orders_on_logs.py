"""Shipped queue orders compared with Fair Memory on windows of real logs, without fitting.

Run: python -m benchmarks.orders_on_logs FOLDER, where FOLDER contains the logs under the paths of `LOGS` (those of the Parallel
Workloads Archive). It writes docs/explanation/orders-on-logs.csv, the data of the page on queue-order trade-offs, and
results/orders-on-logs/search.toml, a search on some of the windows and generated workloads. It takes a minute on one core.
"""

from __future__ import annotations

import gzip
import math
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import tomli_w

from poolwise import catalog, studies
from poolwise.files.scheduler import load_scheduler
from poolwise.files.study import SchedulerSection
from poolwise.model import Workload
from poolwise.quantities import SECOND
from poolwise.search.evaluation import evaluate
from poolwise.studies.cells import Cell, workload_of

CACHE, WRITTEN = Path("results/orders-on-logs"), Path("docs/explanation/orders-on-logs.csv")
ORDERS = ("fm", "backlog", "fcfs", "sjf", "wfp3", "f1", "fair", "area")
"""Orders; the first is the reference of the comparison."""
LOAD = 0.9
"""Offered load over the whole log, with submissions moved together."""
TAU_S = 10.0
WARM_UP = 0.1
"""Share of unmeasured jobs at the start of a window, because the machine starts empty."""


def flat(processors: int) -> dict[str, Any]:
    """Return a machine with one-processor nodes of 512 MiB, and a shared pool of the same total capacity."""
    return {
        "version": 1,
        "name": "flat",
        "node": [{"name": "processor", "cores": 1, "memory": "512 MiB"}],
        "rack": [{"count": 1, "nodes": {"processor": processors}}],
        "pool": [{"name": "memory", "per": "rack", "memory": f"{processors // 2} GiB"}],
    }


@dataclass(frozen=True)
class Log:
    """A log and its machine.

    Attributes
    ----------
    file : path in the folder of logs; None: the shipped log
    machine : its content, or the name of a shipped machine
    windows : number of disjoint windows with equal numbers of jobs
    first : first job of the first window
    together : whether to also run the log with submissions moved together, to an offered load of `LOAD`
    """

    file: str | None
    machine: dict[str, Any] | str
    windows: int
    first: int = 0
    together: bool = True

    def path(self, folder: Path) -> Path:
        """Return the path of the log."""
        return catalog.find("traces", "cerit-2013.swf.gz") if self.file is None else folder / self.file

    def study(self, trace: Path, first: int, jobs: int | None) -> studies.Study:
        """Return a window as a study with one cell."""
        measure = {"baseline": False, "warm_up": math.ceil((jobs or 0) * WARM_UP)}
        workload = {"trace": str(trace.resolve()), "format": "swf", "first": first, **({"jobs": jobs} if jobs else {})}
        file = CACHE / "study.toml"
        tables = {"version": 1, "machine": self.machine, "workload": workload, "scheduler": {}, "measure": measure}
        file.write_text(tomli_w.dumps(tables), encoding="utf-8")
        return studies.load(file)


LOGS: Mapping[str, Log] = {
    "UniLu-Gaia 2014": Log("hpc_unilu_gaia_2014/UniLu-Gaia-2014-2.swf.gz", flat(2004), 12),
    "HPC2N 2002": Log("hpc_hpc2n_excerpt_2002/hpc2n.swf.gz", flat(240), 6),
    "NASA iPSC 1993": Log("hpc_nasa_ipsc_1993/NASA-iPSC-1993-3.1-cln.swf.gz", flat(128), 12),
    "LCG 2005": Log("hpc_lcg_2005/LCG.swf.gz", flat(1757), 12, together=False),
    "CERIT-SC 2013": Log(None, "catalog:cerit-racks", 5, first=12_000, together=False),
}
"""The search used only the first 12,000 jobs of CERIT-SC. LCG's machine is sized for a load of 0.9."""


def moved_together(source: Path, factor: float) -> Path:
    """Write a copy of a log with all submission times multiplied by a factor, and return its path."""
    target = CACHE / f"moved-{source.name.removesuffix('.gz')}"
    lines = gzip.decompress(source.read_bytes()).decode(errors="replace").splitlines()
    rows = [line.split()[:18] for line in lines if line.strip() and not line.startswith(";")]
    moved = (" ".join([row[0], str(round(int(row[1]) * factor)), *row[2:]]) for row in rows)
    target.write_text("".join(f"{line}\n" for line in moved), encoding="utf-8")
    return target


def order(name: str) -> SchedulerSection:
    """Return a shipped order with EASY backfilling."""
    read = load_scheduler(catalog.find("schedulers", f"{name}-easy"))
    return SchedulerSection(**{field: getattr(read, field) for field in SchedulerSection.model_fields})


def whole_log(log: Log, folder: Path) -> tuple[Cell, Workload]:
    """Return the cell and workload of the whole log on its machine."""
    (cell,) = log.study(log.path(folder), 0, None).cells
    return cell, workload_of(cell)


def jobs_of_a_window(log: Log, folder: Path) -> int:
    """Return the number of jobs per window."""
    return (len(whole_log(log, folder)[1]) - log.first) // log.windows


def rows(name: str, log: Log, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield one row per order and window, as logged and with submissions moved together."""
    whole, workload = whole_log(log, folder)
    span_s = int(workload.submit[-1] - workload.submit[0]) / SECOND
    nodes = int(whole.machine.capacity[:, whole.machine.resource("nodes")].sum())
    load = float(workload.node_seconds.sum()) / nodes / span_s
    forms = {"as logged": (log.path(folder), load)}
    if log.together:
        forms["moved together"] = (moved_together(log.path(folder), load / LOAD), LOAD)
    jobs = jobs_of_a_window(log, folder)
    for form, (trace, offered) in forms.items():
        for window in range(log.windows):
            (cell,) = log.study(trace, log.first + window * jobs, jobs).cells
            for order_name in ORDERS:
                fares = evaluate(replace(cell, scheduler=order(order_name)), TAU_S)
                row = {"log": name, "form": form, "load": offered, "window": window, "first": log.first + window * jobs}
                yield {**row, "jobs": jobs, "order": f"{order_name}-easy", **fares._asdict()}


def search(folder: Path) -> dict[str, Any]:
    """Return the shipped search with half of the windows of each log for training, a quarter for validation, the rest for test.

    Submissions are moved together. Each kind of generated workload contributes one seed for training, one for validation, and
    three new ones for test.
    """
    tables = tomllib.loads(catalog.find("searches", "orders").read_text(encoding="utf-8"))
    seeds = {"train": [0], "validation": [100], "test": [300, 301, 302]}
    for split, chosen in seeds.items():
        generated = [part for part in tables["splits"][split] if "generator" in part["workload"]]
        tables["splits"][split] = [{**part, "seeds": {"values": chosen}} for part in generated]
    for log in LOGS.values():
        if log.together:
            source = log.path(folder)
            trace, jobs = CACHE / f"moved-{source.name.removesuffix('.gz')}", jobs_of_a_window(log, folder)
            for window in range(log.windows):
                split = ("train", "train", "validation", "test")[4 * window // log.windows]
                stretch = {"trace": trace.name, "format": "swf", "first": window * jobs, "jobs": jobs}
                part = {"machine": log.machine, "workload": stretch, "warm_up": math.ceil(jobs * WARM_UP)}
                tables["splits"][split].append(part)
    return {**tables, "title": "Orders on real logs and generated workloads"}


def main(folder: Path) -> None:
    """Run all logs, and write the rows and the search file."""
    CACHE.mkdir(parents=True, exist_ok=True)
    log_rows = [row for name, log in LOGS.items() for row in rows(name, log, folder)]
    pl.DataFrame(log_rows).write_csv(WRITTEN, float_precision=6)
    (CACHE / "search.toml").write_text(tomli_w.dumps(search(folder)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
