"""Generate the shipped example of a table in ticks: synthetic jobs in the format of the published month of Perlmutter jobs.

Times are ticks of 10 s, memory is in GB per node. Running the module rewrites the shipped file; a test compares the two.
"""

import random
from pathlib import Path

from poolwise import catalog

FILE = Path(catalog.FOLDER) / "traces" / "example-ticks.csv"
JOBS, TICKS = 300, 30 * 8640


def text() -> str:
    """Return the content of the file."""
    dice = random.Random(20240201)
    lines = ["jobid,submit,start,end,nnodes,duration,memory"]
    submits = sorted(dice.randrange(TICKS) for _ in range(JOBS))
    for number, submit in enumerate(submits, start=5_000_000):
        start = submit + int(dice.expovariate(1 / 300))
        duration = max(60, min(int(dice.lognormvariate(5.9, 1.0)), 4320))
        nodes = dice.choices([1, 2, 4, 8, 16, 64], [54, 24, 10, 6, 4, 2])[0]
        memory = min(round(dice.lognormvariate(3.8, 0.6), 2), 480.0)
        lines.append(f"{number},{submit},{start},{start + duration},{nodes},{duration},{memory}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
