"""Prediction of slowdowns at one page-in latency from those at another: real programs with 0, 5 and 20 us added.

Run as root, with zram and scikit-learn: python -m benchmarks.added_latency FOLDER [REPEAT]. FOLDER caches the measurements.
It writes FOLDER/added-latency.csv and prints the table of docs/explanation/measured-profiles.md.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.added_latency.delay import delayed_page_ins
from poolwise.atomic_write import write_whole
from poolwise_agents.profiling.cleanup import exit_on_signals, owned_resources, records_folder
from poolwise_agents.profiling.control_groups import find_hierarchy
from poolwise_agents.profiling.experiment import MeasurementPlan, measure_program, to_csv

ADDED_US = (0, 5, 20)
PROGRAMS = {
    "K-means": ("kmeans.py", "200000"),
    "word count": ("word_count.py", "3000000"),
    "conjugate gradients": ("conjugate_gradient.py", "72", "20"),
}
"""Programs that the paper also measured, with the sizes of the shipped profiles."""
FOLDER = Path(__file__).parents[1] / "programs"
LONGEST_S = 200.0
COLUMNS = (
    "program", "added_us", "remote", "runs", "page_in_us", "local_s", "slowdown", "lowest", "highest", "major_faults",
    "by_model", "by_faults", "load",
)  # fmt: skip
Row = dict[str, Any]


def print_progress(done: int, total: int, text: str) -> None:
    """Print a line before each run."""
    print(f"  [{done}/{total}] {text}", file=sys.stderr)


def measure(folder: Path, program: str, added_us: int, repeat: int) -> Path:
    """Measure a program unless its file exists; return the file."""
    file = folder / f"{program.replace(' ', '-')}-{added_us}us.csv"
    if not file.exists():
        name, *arguments = PROGRAMS[program]
        command = [sys.executable, str(FOLDER / name), *arguments]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL
        )  # files that are read for the first time would count as its memory
        plan = MeasurementPlan(program, tuple(command), repeat=repeat, make_swap=True, clock="cpu", longest_s=LONGEST_S)
        with exit_on_signals(), owned_resources(records_folder(), "measure") as mine:
            during = partial(delayed_page_ins, added_us * 1000)
            measured = measure_program(plan, find_hierarchy(), mine, print_progress, during)
        conditions = json.dumps({"conditions": measured.conditions}, indent=1)
        write_whole(Path(f"{file}.provenance.json"), conditions.encode())
        write_whole(file, to_csv(measured).encode())
    return file


def to_rows(program: str, files: Mapping[int, Path]) -> Iterator[Row]:
    """Yield the rows of a program, by latency and share; `files` maps each added latency to its measurements.

    All runs with all memory local form one sample, since they have no page-ins. Two predictions start from the slowdown without
    added latency: `by_model` scales it with the page-in latency (median of the probe) as `MemoryProfiles` does, and `by_faults`
    adds the extra latency of each major fault.
    """
    runs = {added: list(csv.DictReader(file.read_text().splitlines())) for added, file in files.items()}
    conditions = {added: json.loads(Path(f"{file}.provenance.json").read_text())["conditions"] for added, file in files.items()}
    local = mean(float(run["seconds"]) for some in runs.values() for run in some if float(run["remote"]) == 0)
    near: dict[float, Row] = {}
    for added, about in conditions.items():
        if added and about["slowed"] is None:
            sys.exit(f"{files[added]}: {about['added_latency']}")
        page_in = about["page_in"]["us"]["p50"]
        for share in sorted({float(run["remote"]) for run in runs[added]} - {0.0}):
            here = [run for run in runs[added] if float(run["remote"]) == share]
            slowdowns = [float(run["seconds"]) / local - 1 for run in here]
            row: Row = {
                "program": program, "added_us": added, "remote": share, "runs": len(here), "page_in_us": page_in,
                "local_s": local, "slowdown": mean(slowdowns), "lowest": min(slowdowns), "highest": max(slowdowns),
                "major_faults": mean(int(run["major_faults"]) for run in here),
                "load": max(about["load_before"], about["load_after"]),
            }  # fmt: skip
            nearest = near.setdefault(share, row)
            row["by_model"] = nearest["slowdown"] * page_in / nearest["page_in_us"]
            row["by_faults"] = nearest["slowdown"] + nearest["major_faults"] * added * 1e-6 / local
            yield row


def to_table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the table of the page: the measurement at each share, and what each rule predicts from the first column."""
    head = ["program", "remote", "+0 us"]
    for added in ADDED_US[1:]:
        head += [f"+{added} us", "latency model", "fault model"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    by_key = {(row["program"], float(row["remote"]), int(row["added_us"])): row for row in rows}
    for program in PROGRAMS:
        for share in sorted({key[1] for key in by_key if key[0] == program}):
            cells = [program, f"{share:.0%}".replace("%", " %"), _two_digits(by_key[program, share, 0], "slowdown")]
            for added in ADDED_US[1:]:
                cells += [_two_digits(by_key[program, share, added], name) for name in ("slowdown", "by_model", "by_faults")]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _two_digits(row: Mapping[str, Any], column: str) -> str:
    return f"{float(row[column]):.2f}"


def main(folder: Path, repeat: int) -> None:
    """Measure each program at each latency, write the rows and print the table."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for program in PROGRAMS:
        rows += to_rows(program, {added: measure(folder, program, added, repeat) for added in ADDED_US})
    with (folder / "added-latency.csv").open("w", newline="") as text:
        table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()})
    print(to_table(rows))
