"""Results of trials, each kept under the hash of what it depends on, so that a plan that was stopped goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from joblib import Parallel, delayed  # type: ignore[import-untyped]  # joblib ships no types

from poolwise.atomic import write_whole
from poolwise.identity import Json, canonical, digest
from poolwise.studies.store import text

Trial = TypeVar("Trial")
Tried = TypeVar("Tried", contravariant=True)


class Bench(Protocol[Tried]):
    """Where trials are run; pickled into the processes that do."""

    def key(self, trial: Tried) -> str:
        """SHA-256 of everything that the result depends on."""
        ...

    def run(self, trial: Tried) -> Json:
        """Simulate one trial."""
        ...


@dataclass(frozen=True, eq=False)
class KeptTrials(Generic[Trial]):
    """Files `cells/KEY.json`, each whole or not there; the caller is the folder's only writer.

    Parameters
    ----------
    jobs
        Processes; all cores if not given. The results do not depend on it.
    worth
        Trials that another process must have to do before it pays to start it.
    """

    bench: Bench[Trial]
    folder: Path
    jobs: int | None
    worth: int = 20

    def of(self, trials: Sequence[Trial]) -> list[Json]:
        """Results of trials, those that are missing run first."""
        keys = [self.bench.key(trial) for trial in trials]
        found = {key: content for key in keys if (content := self._read(key)) is not None}
        missing = {key: trial for key, trial in zip(keys, trials, strict=True) if key not in found}
        for key, content in self._run(missing):
            write_whole(self.folder / "cells" / f"{key}.json", text({"key": key, "sha256": _sum(content), "result": content}))
            found[key] = content
        return [found[key] for key in keys]

    def _read(self, key: str) -> Json | None:
        try:
            kept: Any = json.loads((self.folder / "cells" / f"{key}.json").read_bytes())
            whole = kept["key"] == key and kept["sha256"] == _sum(kept["result"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return dict(kept["result"]) if whole else None

    def _run(self, missing: dict[str, Trial]) -> Iterator[tuple[str, Json]]:
        wanted = self.jobs if self.jobs is not None and self.jobs > 0 else os.cpu_count() or 1
        processes = min(wanted, len(missing) // self.worth)
        if processes < 2:
            yield from ((key, self.bench.run(trial)) for key, trial in missing.items())
            return
        (first, trial), *others = missing.items()
        yield first, self.bench.run(trial)  # one process compiles before workers start
        workers = Parallel(n_jobs=processes, backend="loky", return_as="generator_unordered", max_nbytes=None)
        yield from workers(delayed(_named)(self.bench, key, trial) for key, trial in others)


def _named(bench: Bench[Trial], key: str, trial: Trial) -> tuple[str, Json]:
    return key, bench.run(trial)


def _sum(content: Json) -> str:
    return digest(canonical(content))
