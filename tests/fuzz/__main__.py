"""Damage logs and read them: `python -m tests.fuzz --count 1000000 --state FILE` goes on where it was stopped.

Prints how many were read and refused, and each that failed with the number by which `--only NUMBER` runs it again. Exits with
1 where one failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fuzz.cases import run_many
from tests.fuzz.originals import originals

BLOCK = 2000


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
    known = originals()
    if chosen.only is not None:
        tally = run_many(known, chosen.seed, range(chosen.only, chosen.only + 1))
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
        tally = run_many(known, chosen.seed, numbers)
        for name in ("read", "refused"):
            state[name] = dict(sorted((Counter(state[name]) + getattr(tally, name)).items()))
        state["failed"] += tally.failed
        state["done"], state["seconds"] = numbers.stop, state["seconds"] + time.perf_counter() - begun
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
