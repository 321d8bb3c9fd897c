"""Fuzz cases, each determined by a seed and a number, and the conditions that a reading of it must meet."""

from __future__ import annotations

import random
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from poolwise.errors import InputError
from poolwise.traces import read
from tests.fuzz.apart import parquet_in_one_process
from tests.fuzz.mutations import mutated
from tests.fuzz.originals import Original

NEVER_RECOGNIZED = ("columns", "philly_tasks")
"""Formats that are never detected and must be named."""


@dataclass
class Tally:
    """Results of cases: format -> inputs that were read, and that were rejected; and failures with their numbers."""

    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)


def run(known: Mapping[str, tuple[Original, ...]], seed: int, number: int, folder: Path, tally: Tally) -> None:
    """Damage a file and read it.

    The result must be a workload or an InputError with a remedy, which names no file but this one; warnings are failures
    too.
    """
    dice = random.Random(f"{seed} {number}")
    format = sorted(known)[number % len(known)]
    original = dice.choice(known[format])
    path = folder / original.name
    path.write_bytes(mutated(original.content, dice))
    machine, options = dice.choice(original.machines), dice.choice(original.options)
    named = format in NEVER_RECOGNIZED or bool(options) or dice.random() < 0.98
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(path, machine, format=format if named else "auto", **options)
        tally.read[format] += 1
    except InputError as error:
        tally.refused[format] += 1
        if not error.message or "\n" in error.message or (error.file is not None and Path(error.file) != path):
            tally.failed.append((number, f"{format}: an uninformative error: {error!r}"))
        elif not error.remedy:
            tally.failed.append((number, f"{format}: an error without a remedy: {error}"))
    except KeyboardInterrupt:
        raise
    except BaseException:  # any other exception is a failure, including panics of libraries
        tally.failed.append((number, f"{format}: {traceback.format_exc(limit=-3)}"))


def run_many(
    known: Mapping[str, tuple[Original, ...]], seed: int, numbers: range, record: Callable[[int], object] = lambda number: None
) -> Tally:
    """Run cases in a temporary folder; call `record` with the number of each before it runs."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name, parquet_in_one_process():
        for number in numbers:
            record(number)
            run(known, seed, number, Path(name), tally)
    return tally
