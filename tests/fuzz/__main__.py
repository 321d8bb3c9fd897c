"""Damage logs and read them: `python -m tests.fuzz --count 1000000 --state FILE` goes on where it was stopped.

Prints how many were read and refused, and each that failed with the number by which `--only NUMBER` runs it again. Exits with
1 where one failed.
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


def run_apart(seed: int, numbers: range) -> tuple[Tally, int]:
    """Run cases in a process that may die, as a library's panic can make it; a death fails the case in which it came.

    Returns what was seen, and the number after the last case. What the dead process had seen before is run again.
    """
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as apart:
        begun = Path(folder) / "begun"
        try:
            return apart.submit(_run_noted, seed, numbers, begun).result(), numbers.stop
        except BrokenProcessPool:
            if not begun.is_file():
                raise
            dead = int(begun.read_text(encoding="utf-8"))
    tally, _ = run_apart(seed, range(numbers.start, dead)) if dead > numbers.start else (Tally(), dead)
    tally.failed.append((dead, "the process died"))
    return tally, dead + 1


def _run_noted(seed: int, numbers: range, begun: Path) -> Tally:
    """Run cases, and note each before it is run."""
    return run_many(originals(), seed, numbers, lambda number: begun.write_text(str(number), encoding="utf-8"))


def main(words: list[str]) -> int:
    """Run the cases that the command line asks for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--count", type=int, default=10_000, help="inputs in all, those of earlier runs with this state included"
    )
    options.add_argument("--seed", type=int, default=0, help="another seed draws other inputs")
    options.add_argument("--state", type=Path, help="JSON file that keeps the count, to go on from")
    options.add_argument("--only", type=int, help="run one input again, by its number")
    chosen = options.parse_args(words)
    if chosen.only is not None:
        tally = run_many(originals(), chosen.seed, range(chosen.only, chosen.only + 1))
        print(dict(tally.read), dict(tally.refused), *(text for _, text in tally.failed), sep="\n")
        return bool(tally.failed)
    state: dict[str, Any] = {"seed": chosen.seed, "done": 0, "seconds": 0.0, "read": {}, "refused": {}, "failed": []}
    if chosen.state is not None and chosen.state.is_file():
        state = json.loads(chosen.state.read_text(encoding="utf-8"))
        if state["seed"] != chosen.seed:
            sys.exit(f"{chosen.state} was begun with --seed {state['seed']}")
    while state["done"] < chosen.count:
        begun = time.perf_counter()
        numbers = range(state["done"], min(chosen.count, state["done"] + BLOCK))
        tally, done = run_apart(chosen.seed, numbers)
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
