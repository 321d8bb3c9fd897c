"""What a run must persist so that another process can continue it; everything else is read again from the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from poolwise.errors import InputError
from poolwise.model.queue import Queue

VERSION = 1


@dataclass(frozen=True)
class Continuation:
    """The state of a run that no snapshot shows. Jobs are identified by name, since rows change with the process.

    Attributes
    ----------
    epoch : ns since 1970 of the run's time 0, so that priorities which count from it go on
    seed : seed of the run's random draws
    draws : name of a job -> its counter of random draws
    next_draw : the counter of the next job that arrives
    passes : name of a waiting job -> scheduling passes it has waited
    """

    epoch: int = 0
    seed: int = 0
    draws: Mapping[str, int] = field(default_factory=dict)
    next_draw: int = 0
    passes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, queue: Queue, seed: int) -> Continuation:
        """Record what must be kept of a run: waiting jobs with their passes, and all jobs' draws."""
        table = queue.table
        draws = {table.name(row): draw for row, draw in enumerate(table.draw.tolist())}
        passes = {table.name(job): n for job, n in zip(queue.jobs.tolist(), queue.passes().tolist(), strict=True)}
        return cls(table.epoch, seed, draws, 1 + max(draws.values(), default=-1), passes)

    def draw(self, name: str) -> int | None:
        """Counter of draws of a job that the earlier run knew, None for any other."""
        return self.draws.get(name)

    def to_json(self) -> str:
        """Write as one line of JSON, the same for the same content."""
        return json.dumps({"version": VERSION, **asdict(self)}, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Continuation:
        """Read what `to_json` wrote; raises InputError for anything else."""
        try:
            content = json.loads(text)
            version = content.pop("version")
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise InputError("this is not the record of a run", field="continuation", remedy="start without it") from error
        if version != VERSION:
            raise InputError(
                f"the record of the run is of version {version}, not {VERSION}", field="version", remedy="start without it"
            )
        try:
            return cls(**content)
        except TypeError as error:
            raise InputError(f"the record of the run: {error}", field="continuation", remedy="start without it") from error
