"""Measurements that are kept, a file each, so that a reproduction can be stopped at any point and go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from joblib import Parallel, delayed  # type: ignore[import-untyped]  # joblib ships no types

from poolwise.files import write_whole
from poolwise.studies.cells import canonical, digest, sources

Case = TypeVar("Case")
Json = dict[str, Any]


def measure(
    cases: Iterable[Case],
    run: Callable[[Case], Json],
    folder: Path,
    jobs: int,
    prepare: Callable[[], object] = lambda: None,
) -> dict[Case, Json]:
    """Measure cases, each once, in parallel; what the folder holds of the same code is not run again.

    Parameters
    ----------
    cases
        Frozen dataclasses: all that a measurement depends on.
    run
        Measures one; returns plain data.
    prepare
        Called once before the workers start, if anything is missing (compiles kernels).
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list(dict.fromkeys(cases))
    files = {case: folder / f"{_key(case)}.json" for case in wanted}
    missing = [case for case in wanted if not files[case].exists()]
    if missing:
        prepare()
        Parallel(n_jobs=jobs)(delayed(_keep)(case, run, files[case]) for case in missing)
    return {case: json.loads(file.read_text()) for case, file in files.items()}


def _keep(case: Case, run: Callable[[Case], Json], file: Path) -> None:
    write_whole(file, canonical(run(case)).encode())


def _key(case: Any) -> str:
    return digest(canonical({"case": asdict(case), "sources": sources()}))[:24]
