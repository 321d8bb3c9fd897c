"""Measurements that are kept, a file each, so that a reproduction can be stopped at any point and go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from poolwise.errors import InputError
from poolwise.identity import Json, canonical, digest, sources
from poolwise.plans.kept import KeptTrials

Case = TypeVar("Case")


def measure_all(
    cases: Iterable[Case],
    run: Callable[[Case], Json],
    folder: Path,
    jobs: int,
    prepare: Callable[[], object] = lambda: None,
) -> dict[Case, Json]:
    """Measure cases, each once, in parallel; what `folder`/cells holds of the same code is not run again.

    Raises InputError if Poolwise itself changes while they run.

    Parameters
    ----------
    cases
        Frozen dataclasses: all that a measurement depends on.
    run
        Measures one; returns plain data.
    prepare
        Called once before the workers start, if anything is missing (compiles kernels).
    """
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys(cases))
    bench = _Bench(run, sources())
    results: KeptTrials[Case] = KeptTrials(bench, folder, jobs, worth=1)
    if not all((folder / "cells" / f"{bench.key(case)}.json").exists() for case in wanted):
        prepare()
    return dict(zip(wanted, results.of(wanted), strict=True))


@dataclass(frozen=True)
class _Bench(Generic[Case]):
    """Where cases are measured: `program` is what `sources` said when the reproduction began."""

    measure: Callable[[Case], Json]
    program: str

    def key(self, case: Any) -> str:
        """SHA-256 of a case and of the code."""
        return digest(canonical({"case": asdict(case), "sources": self.program}))

    def run(self, case: Case) -> Json:
        """Measure one, as it will be read again."""
        if sources() != self.program:  # a worker that started later
            raise InputError("Poolwise itself changed while the reproduction ran", remedy="run it again")
        found: Json = json.loads(canonical(self.measure(case)))
        return found
