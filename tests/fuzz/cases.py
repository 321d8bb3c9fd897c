"""One damaged log after another, each known by a seed and a number, and what a reading of it must not do."""

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
from tests.fuzz.apart import parquet_apart
from tests.fuzz.mutations import mutated
from tests.fuzz.originals import Original

NEVER_RECOGNISED = ("columns", "philly_tasks")
"""Formats that must be named."""


@dataclass
class Tally:
    """What has been seen: format -> inputs that were read, and that were refused; and the numbers of those that failed."""

    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)


def run(known: Mapping[str, tuple[Original, ...]], seed: int, number: int, folder: Path, tally: Tally) -> None:
    """Damage a file and read it.

    It must become a workload or an InputError that says what to do, and that names this file where it names one; warnings
    fail as well.
    """
    dice = random.Random(f"{seed} {number}")
    format = sorted(known)[number % len(known)]
    original = dice.choice(known[format])
    path = folder / original.name
    path.write_bytes(mutated(original.content, dice))
    machine, options = dice.choice(original.machines), dice.choice(original.options)
    named = format in NEVER_RECOGNISED or bool(options) or dice.random() < 0.98
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(path, machine, format=format if named else "auto", **options)
        tally.read[format] += 1
    except InputError as error:
        tally.refused[format] += 1
        if not error.message or "\n" in error.message or (error.file is not None and Path(error.file) != path):
            tally.failed.append((number, f"{format}: an error that says nothing: {error!r}"))
        elif not error.remedy:
            tally.failed.append((number, f"{format}: an error without a remedy: {error}"))
    except KeyboardInterrupt:
        raise
    except BaseException:  # whatever else is raised is what is looked for, panics of libraries included
        tally.failed.append((number, f"{format}: {traceback.format_exc(limit=-3)}"))


def run_many(
    known: Mapping[str, tuple[Original, ...]], seed: int, numbers: range, note: Callable[[int], object] = lambda number: None
) -> Tally:
    """Run cases in a folder of their own; `note` is told of each before."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as name, parquet_apart():
        for number in numbers:
            note(number)
            run(known, seed, number, Path(name), tally)
    return tally
