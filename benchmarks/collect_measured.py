"""Catalog files of `catalog:measured`, from the measurements of `programs/measure_all.sh FOLDER`.

Run: python -m benchmarks.collect_measured FOLDER [CATALOG]; CATALOG defaults to the one in this tree. It writes measurements,
conditions and profiles fitted as by `poolwise profile fit`, and prints the table rows of docs/explanation/measured-profiles.md.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from poolwise import catalog
from poolwise.performance.fitting import fit, read_measurements, to_csv

PROGRAMS = ("kmeans", "conjugate_gradient", "word_count", "graph_search", "redis", "postgresql")
HERE = Path(__file__).parent
SOURCE = "measured: memory limit, swap in zram, processor time; conditions in catalog/measurements/measured.json"


def without_paths(words: Sequence[str], folder: Path) -> list[str]:
    """Return a command without the paths of this computer: the folder of results, the source tree, the Python installation."""
    own = {str(folder): "FOLDER", str(folder.resolve()): "FOLDER", str(HERE): HERE.name}
    shortened = []
    for word in words:
        for path, name in own.items():
            word = word.replace(path, name)
        shortened.append(Path(word).name if word.startswith("/") else word)
    return shortened


def collect(folder: Path, names: Sequence[str]) -> tuple[str, dict[str, object]]:
    """Return the text of the measurements of all programs, and the conditions of each."""
    lines: list[str] = []
    about: dict[str, object] = {}
    for name in names:
        file = folder / f"{name}.csv"
        head, *rows = file.read_text().splitlines()
        lines += rows if lines else [head, *rows]
        provenance = json.loads(Path(f"{file}.provenance.json").read_text())
        about[name] = {"command": without_paths(provenance["command"], folder), **provenance["conditions"]}
    return "\n".join(lines) + "\n", about


def page_rows(text: str) -> Iterator[str]:
    """Yield the rows of the page: peak, and mean slowdown at each measured share."""
    runs = list(csv.DictReader(io.StringIO(text)))
    for name in dict.fromkeys(run["workload"] for run in runs):
        here = [run for run in runs if run["workload"] == name and float(run["frequency"]) == 1]
        seconds = {
            share: mean(float(run["seconds"]) for run in here if float(run["remote"]) == share)
            for share in sorted({float(run["remote"]) for run in here})
        }
        cells = [f"{seconds[share] / seconds[0.0] - 1:.2f}" for share in seconds if share]
        yield f"| {name} | {float(here[0]['peak_mib']):.0f} MiB | " + " | ".join(cells) + " |"


def main(folder: Path, shipped: Path) -> None:
    """Write the files of the catalog and print the rows of the page."""
    text, about = collect(folder, [f"measured_{name}" for name in PROGRAMS])
    measurements = shipped / "measurements" / "measured.csv"
    measurements.write_text(text)
    measurements.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n")
    profiles = [replace(fit(measured).profile, source=SOURCE) for measured in read_measurements(measurements)]
    (shipped / "memory_profiles" / "measured.csv").write_text(to_csv(profiles))
    print("\n".join(page_rows(text)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else catalog.FOLDER)
