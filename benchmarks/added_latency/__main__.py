"""Run the measurements, and print the table of docs/explanation/measured-profiles.md; see `experiment`."""

import sys
from pathlib import Path

from benchmarks.added_latency.experiment import main

main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2)
