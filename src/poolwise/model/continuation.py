"""State that a run must persist so that another process can continue it; everything else is read from the machine again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from poolwise.errors import InputError
from poolwise.model.queue import Queue

VERSION = 1
_REMEDY = "start without the saved state"


@dataclass(frozen=True)
class Continuation:
    """The part of a run's state that no snapshot contains. Jobs are identified by name, since rows change with the process.

    Attributes
    ----------
    epoch : the run's time 0, in ns since 1970; priorities that depend on it stay the same
    seed : random seed of the run
    draws : name of a job -> its counter of random draws
    next_draw : counter that the next arriving job gets
    passes : name of a waiting job -> number of scheduling passes that it has waited
    """

    epoch: int = 0
    seed: int = 0
    draws: Mapping[str, int] = field(default_factory=dict)
    next_draw: int = 0
    passes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, queue: Queue, seed: int) -> Continuation:
        """Collect the state of a run: the waiting jobs with their numbers of passes, and the draw counters of all jobs."""
        table = queue.table
        draws = {table.name(row): draw for row, draw in enumerate(table.draw.tolist())}
        passes = {table.name(job): n for job, n in zip(queue.jobs.tolist(), queue.passes().tolist(), strict=True)}
        return cls(table.epoch, seed, draws, 1 + max(draws.values(), default=-1), passes)

    def draw(self, name: str) -> int | None:
        """Return the counter of random draws of a job; None for a job that the earlier run did not have."""
        return self.draws.get(name)

    def to_json(self) -> str:
        """Return one line of JSON; equal contents give equal lines."""
        return json.dumps({"version": VERSION, **asdict(self)}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Continuation:
        """Read the output of `to_json`; raises InputError for any other text."""
        try:
            content = json.loads(text)
            version = content.pop("version")
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise InputError("the text is not the saved state of a run", field="continuation", remedy=_REMEDY) from error
        if version != VERSION:
            raise InputError(f"the saved state has version {version}, expected {VERSION}", field="version", remedy=_REMEDY)
        try:
            return cls(**content)
        except TypeError as error:
            raise InputError(f"invalid saved state of a run: {error}", field="continuation", remedy=_REMEDY) from error
