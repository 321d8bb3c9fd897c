"""Command line of the benchmarks: run the named cases, or all except those on request, and write one file per case."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import benchmarks.cells  # registers its cases
import benchmarks.combinations  # registers its case
import benchmarks.dispatch  # registers its cases
import benchmarks.evaluation  # registers its case
import benchmarks.executors  # registers its cases
import benchmarks.features  # registers its case
import benchmarks.first_simulate  # registers its case
import benchmarks.flow  # registers its cases
import benchmarks.flow_scheduler  # registers its cases
import benchmarks.forecast  # registers its case
import benchmarks.nvme_scale  # registers its case
import benchmarks.pools  # registers its cases
import benchmarks.shared_features  # registers its cases
import benchmarks.shared_nodes
import benchmarks.slurm_site  # noqa: F401  # registers its cases
from benchmarks.case import cases


def main(names: list[str]) -> int:
    """Run the cases, print and write their results, and return the exit code: 1 if a target was missed."""
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    unknown = sorted(set(names) - cases.keys())
    if unknown:
        print(f"unknown benchmarks: {', '.join(unknown)}. Choose from: {', '.join(cases)}", file=sys.stderr)
        return 2
    missed = 0
    for name in names or [name for name, case in cases.items() if not case.on_request]:
        figures = cases[name].run()
        reached = cases[name].reached(figures)
        missed += sum(not well for well in reached.values())
        record = {
            "case": name,
            "figures": {key: float(f"{value:.4g}") for key, value in figures.items()},
            "targets": {key: f"{sign} {bound:g}" for key, (sign, bound) in cases[name].targets.items()},
            "reached": reached,
            "python": platform.python_version(),
            "cpu": platform.machine(),
        }
        (folder / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
        verdict = "; ".join(f"{key} {'reached' if well else 'MISSED'}" for key, well in reached.items())
        print(f"{name:18s} " + "  ".join(f"{key} {value:.4g}" for key, value in figures.items()) + f"  [{verdict}]", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
