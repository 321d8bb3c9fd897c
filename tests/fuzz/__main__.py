"""Damage logs and read them: `python -m tests.fuzz --count 1000000 --state FILE` resumes where it stopped.

Prints the number of inputs that were read and rejected, and each failure with its number; `--only NUMBER` repeats it. Exits
with 1 if any input failed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from tests.fuzz.cases import Tally, run_many
from tests.fuzz.originals import originals

BLOCK = 5000


def run_in_subprocess(seed: int, numbers: range) -> tuple[Tally, int]:
    """Run cases in a process that a library's panic may terminate; a crash fails the case that caused it.

    Returns the results, and the number after the last case. Cases that the crashed process had completed are run again.
    """
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        current = Path(folder) / "current"
        try:
            return pool.submit(_run_recorded, seed, numbers, current).result(), numbers.stop
        except BrokenProcessPool:
            if not current.is_file():
                raise
            crashed = int(current.read_text(encoding="utf-8"))
    tally, _ = run_in_subprocess(seed, range(numbers.start, crashed)) if crashed > numbers.start else (Tally(), crashed)
    tally.failed.append((crashed, "the process crashed"))
    return tally, crashed + 1


def _run_recorded(seed: int, numbers: range, current: Path) -> Tally:
    """Run cases, and record the number of each before it runs."""
    return run_many(originals(), seed, numbers, lambda number: current.write_text(str(number), encoding="utf-8"))


def main(words: list[str]) -> int:
    """Run the cases selected on the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--count", type=int, default=10_000, help="total number of inputs, including those of earlier runs with this state"
    )
    options.add_argument("--seed", type=int, default=0, help="random seed of the inputs")
    options.add_argument("--state", type=Path, help="JSON file that stores the progress, to resume from")
    options.add_argument("--only", type=int, help="number of a single input to repeat")
    chosen = options.parse_args(words)
    if chosen.only is not None:
        tally = run_many(originals(), chosen.seed, range(chosen.only, chosen.only + 1))
        print(dict(tally.read), dict(tally.refused), *(text for _, text in tally.failed), sep="\n")
        return bool(tally.failed)
    state: dict[str, Any] = {"seed": chosen.seed, "done": 0, "seconds": 0.0, "read": {}, "refused": {}, "failed": []}
    if chosen.state is not None and chosen.state.is_file():
        state = json.loads(chosen.state.read_text(encoding="utf-8"))
        if state["seed"] != chosen.seed:
            sys.exit(f"{chosen.state} was created with --seed {state['seed']}")
    while state["done"] < chosen.count:
        begun = time.perf_counter()
        numbers = range(state["done"], min(chosen.count, state["done"] + BLOCK))
        tally, done = run_in_subprocess(chosen.seed, numbers)
        for name in ("read", "refused"):
            state[name] = dict(sorted((Counter(state[name]) + getattr(tally, name)).items()))
        state["failed"] += tally.failed
        state["done"], state["seconds"] = done, state["seconds"] + time.perf_counter() - begun
        if chosen.state is not None:
            chosen.state.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
        for number, text in tally.failed:
            print(f"{number}: {text}", flush=True)
        print(f"{state['done']:,} of {chosen.count:,} in {state['seconds']:,.0f} s, {len(state['failed'])} failed", flush=True)
    for name in ("read", "refused"):
        print(f"{name}: {sum(state[name].values()):,}: {state[name]}")
    return bool(state["failed"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
