"""Recorded days of a real Slurm (`tests/live/slurm/choices.py`), and their replays by the imported configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poolwise import traces
from poolwise.cli import app as cli
from poolwise.engines import simulate
from poolwise.files.factory import scheduler_of
from poolwise.files.machine import load_machine
from poolwise.files.scheduler import load_scheduler
from poolwise.files.slurm_import.cluster import SlurmCluster, SlurmFiles
from poolwise.files.slurm_import.machine_file import racks_of
from poolwise.interfaces import BackfillPolicy, SchedulingPass
from poolwise.model import Schedule, Start
from poolwise.model.rules import HeadScope
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.slurm import SlurmBackfill
from poolwise.quantities import MS, SECOND
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.slurm import hostlist
from tests.helpers.completing import Completing, CompletingNodes
from tests.helpers.slurm_day import CLOSE_MS, next_instant

INTERVAL = 4
"""Interval of the backfill (s)."""
STOPPING_MS = 100
"""Maximum time between the stop of a run and the pass that starts a job on its nodes."""
HEADER = "JobIDRaw|User|Partition|Submit|Start|State|NNodes|AllocCPUS|ElapsedRaw|TimelimitRaw|ReqMem"
"""Header of sacct.txt."""


@dataclass(frozen=True)
class RecordedLooks(NoBackfill):
    """Slurm's main scheduler without backfill, with passes exactly at given instants (ns), ascending."""

    instants: tuple[int, ...] = ()

    def next_wakeup(self, now: int) -> int:
        return next_instant(self.instants, now)

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        return super().select(cycle) if self.next_wakeup(cycle.snapshot.now - 1) == cycle.snapshot.now else ()

    def rule(self) -> None:
        return None


@dataclass(frozen=True)
class Recording:
    """A day as it ran.

    Attributes
    ----------
    folder : folder with slurm.conf, sacct.txt and times.json
    ms : submit, start, end: (n_job,) ms from a minute before the first submission; looks, backfills: those of the passes;
        stopped: (n_job,) those of preemptions, -1 for jobs that were not preempted, missing without preemption. The end of
        a preempted job is its first start and the run time that it needs.
        completed: (n_job,) those at which the controller could use all nodes of a job again, -1 if unknown, missing in older
        recordings
    ran_on : (n_job,) node lists of the first run of each job
    """

    folder: Path
    ms: Mapping[str, np.ndarray]
    ran_on: Sequence[str]

    @classmethod
    def read(cls, folder: Path) -> Recording:
        """Read a recording."""
        times = json.loads((folder / "times.json").read_text())
        nodes = times.pop("ran_on")
        return cls(folder, {name: np.array(ms, dtype=np.int64) for name, ms in times.items()}, nodes)

    def write(self) -> None:
        """Write times.json."""
        times = {name: ms.tolist() for name, ms in self.ms.items()}
        (self.folder / "times.json").write_text(json.dumps({**times, "ran_on": [*self.ran_on]}) + "\n")

    def replay(
        self,
        out: Path,
        placement: str = "",
        without: Mapping[str, str] | None = None,
        heads: HeadScope = "partition",
        *,
        reserves: bool = True,
        passes: bool = True,
    ) -> Comparison:
        """Import slurm.conf to a folder and replay the day by [today], with another placement or texts of slurm.conf replaced.

        `heads` applies to days without backfill; `reserves` is whether nodes are reserved as in reservations.txt; `passes` is
        whether the times of the controller's passes are the recorded ones, or follow from the configuration and the first pass
        of each scheduler.

        Submissions and run times are the recorded ones. A job holds its nodes from the
        pass that started it until the controller could use them again.
        """
        text = (self.folder / "slurm.conf").read_text()
        for old, new in (without or {}).items():
            assert re.search(old, text), f"{old} is not in slurm.conf"
            text = re.sub(old, new, text)
        conf = out.with_suffix(".conf")
        conf.write_text(text)
        words = ["import", "slurm", "--conf", str(conf), "--log", str(self.folder / "sacct.txt"), "--out", str(out)]
        words += ["--qos", str(self.folder / "qos.txt")] if (self.folder / "qos.txt").exists() else []
        words += ["--assoc", str(self.folder / "assoc.txt")] if (self.folder / "assoc.txt").exists() else []
        topology = found if (found := self.folder / "topology.conf").exists() else None
        words += ["--topology", str(topology)] if topology is not None else []
        dump = self.folder / "reservations.txt"
        words += ["--reservations", str(dump), "--timezone", "UTC"] if reserves and dump.exists() else []
        assert cli.run(words) == 0
        machine, how = load_machine(out / "machine.toml"), scheduler_of(load_scheduler(out / "slurm.toml"))
        first = int(self.ms["submit"][0]) // 1000 * SECOND  # windows count from the first job of the log
        late = SECOND + 2 * MS  # Slurm rounds the end of a job that starts between two seconds down; its clock lags a few ms
        moved = [replace(window, start=first + window.start + late, end=first + window.end) for window in machine.windows]
        machine = replace(machine, windows=tuple(moved))
        jobs = traces.read(self.folder / "sacct.txt", machine, "sacct", memory_field="requested")
        assert len(jobs) == len(self.ran_on)
        assert isinstance(how, ListScheduler)
        steps = (SECOND, INTERVAL * SECOND)
        if isinstance(how.backfill, SlurmBackfill):
            steps = (int(how.backfill.every * SECOND) or SECOND, how.backfill.parameters.interval)
        looks, backfills = (self._instants(name, step // MS) for name, step in zip(("looks", "backfills"), steps, strict=True))
        racks = racks_of(SlurmCluster(SlurmFiles(conf, topology=topology), HEADER.split("|"))).values()
        names = {
            f"rack{rack}.{kind}{k}": host
            for rack, types in enumerate(racks)
            for kind, hosts in types.items()
            for k, host in enumerate(hosts)
        }
        times: BackfillPolicy = RecordedLooks(heads, looks)
        ends = self._freed_ms()
        if isinstance(how.backfill, SlurmBackfill):
            completing = tuple(self._completing({host: name for name, host in names.items()}))
            times = CompletingNodes(how.backfill.conf, how.backfill.settings, 0.0, 0.0, 0.0, looks, backfills, completing)
            ends = self.ms["end"]
        if isinstance(how.backfill, SlurmBackfill) and not passes:
            looked, begun = (float(self.ms[name][0]) / 1000 for name in ("looks", "backfills"))
            times = replace(how.backfill, looked=looked, begun=begun)
        jobs = replace(jobs, submit=self.ms["submit"] * MS, duration=(ends - self._decided_ms()) * MS)
        how = replace(how, backfill=times, placement=make("placements", placement) if placement else how.placement)
        return Comparison(self, names, simulate(jobs, machine, how).schedule)

    @property
    def stopped(self) -> np.ndarray:
        """Ms at which each job was preempted, (n_job,); -1 if it was not."""
        return self.ms.get("stopped", np.full(len(self.ran_on), -1))

    def _instants(self, passes: str, step_ms: int) -> tuple[int, ...]:
        """Return the instants (ns) of passes, followed by others for jobs that start later than in the recording."""
        instants = self.ms[passes].tolist()
        more = range(instants[-1], instants[-1] + 1_000_000, step_ms)[1:] if instants else ()
        return tuple(ms * MS for ms in (*instants, *more))

    @property
    def _passes_ms(self) -> np.ndarray:
        return np.unique(np.concatenate([self.ms["looks"], self.ms["backfills"]]))

    def _decided_ms(self) -> np.ndarray:
        """Return the ms of the pass that started each job, or that stopped runs for it, (n_job,)."""
        start = self.ms["start"].copy()
        for row in np.flatnonzero(self.stopped >= 0).tolist():
            stop, nodes = self.stopped[row], {*hostlist.expand(self.ran_on[row])}
            for job in np.flatnonzero((start > stop) & (start <= stop + STOPPING_MS)).tolist():
                if nodes & {*hostlist.expand(self.ran_on[job])}:
                    start[job] = stop
        return self._passes_ms[np.searchsorted(self._passes_ms, start, side="right") - 1]

    def _completing(self, owners: Mapping[str, str]) -> Iterator[Completing]:
        """Yield the completing nodes, by their owners: node -> owner.

        Without recorded times, these are nodes whose job ended at most `CLOSE_MS` before a pass that started no job on them.
        """
        if "completed" in self.ms:
            for row in np.flatnonzero(self.stopped < 0).tolist():
                for host in hostlist.expand(self.ran_on[row]):
                    yield Completing(owners[host], int(self.ms["end"][row]) * MS, int(self.ms["completed"][row]) * MS)
            return
        used = self._nodes_used()
        for row, at in enumerate(self.ms["end"].tolist()):
            if self.stopped[row] >= 0:
                continue
            for soon in self._passes_ms[(self._passes_ms >= at) & (self._passes_ms <= at + CLOSE_MS)].tolist():
                for host in {*hostlist.expand(self.ran_on[row])} - used.get(soon, set()):
                    yield Completing(owners[host], at * MS, (soon + 1) * MS)

    def _freed_ms(self) -> np.ndarray:
        """Return the ms at which the controller could use each job's nodes, (n_job,): at its end, or after a pass too soon.

        A pass within `CLOSE_MS` of an end that started no job on its nodes may have found them still completing.
        """
        freed, used = self.ms["end"].copy(), self._nodes_used()
        for row, at in enumerate(freed.tolist()):
            if self.stopped[row] >= 0:
                continue
            for soon in self._passes_ms[(self._passes_ms >= at) & (self._passes_ms <= at + CLOSE_MS)].tolist():
                if not used.get(soon, set()) & {*hostlist.expand(self.ran_on[row])}:
                    freed[row] = soon + 1
        return freed

    def _nodes_used(self) -> dict[int, set[str]]:
        """Return the nodes on which each pass (ms) started jobs."""
        used = dict[int, set[str]]()
        for at, nodes in zip(self._decided_ms().tolist(), self.ran_on, strict=True):
            used.setdefault(at, set()).update(hostlist.expand(nodes))
        return used


@dataclass(frozen=True)
class Comparison:
    """A recorded day and its replay; `names` maps owners of the machine to nodes."""

    day: Recording
    names: Mapping[str, str]
    schedule: Schedule

    @property
    def same_starts(self) -> float:
        """Share of the starts that differ by at most a backfill interval."""
        return float(np.mean(np.abs(self._starts_ms - self.day.ms["start"]) <= 1000 * INTERVAL))

    @property
    def wait_deviation(self) -> float:
        """Relative deviation of the mean wait."""
        real, ours = (float(np.mean(starts - self.day.ms["submit"])) for starts in (self.day.ms["start"], self._starts_ms))
        return (ours - real) / real

    @property
    def same_nodes(self) -> float:
        """Share of the jobs that ran on the same nodes."""
        owners, same = self.schedule.machine.owners, []
        for run in np.unique(self.schedule.job, return_index=True)[1].tolist():  # the first run of each job
            job = int(self.schedule.job[run])
            ours = {self.names[owners[owner]] for owner, _, _ in self.schedule.placement_of(run)}
            same.append(ours == {*hostlist.expand(self.day.ran_on[job])})
        return float(np.mean(same))

    @property
    def _starts_ms(self) -> np.ndarray:
        starts = np.full(len(self.day.ran_on), np.iinfo(np.int64).max // 2)
        np.minimum.at(starts, self.schedule.job, self.schedule.start // MS)
        return starts

    @property
    def same_stops(self) -> float:
        """Share of the jobs preempted in either that are preempted in both, within a backfill interval."""
        ours = np.full(len(self.day.ran_on), -1)
        for stop in reversed(self.schedule.stops):
            ours[self.schedule.job[stop.run]] = self.schedule.end[stop.run] // MS
        either = (ours >= 0) | (self.day.stopped >= 0)
        close = (ours >= 0) & (self.day.stopped >= 0) & (np.abs(ours - self.day.stopped) <= 1000 * INTERVAL)
        return float(np.mean(close[either])) if either.any() else 1.0

    def __str__(self) -> str:
        starts = f"{self.same_starts:.0%} of the starts within {INTERVAL} s, mean wait {self.wait_deviation:+.1%}"
        stops = f", {self.same_stops:.0%} of the preemptions" if (self.day.stopped >= 0).any() else ""
        return f"{starts}, {self.same_nodes:.0%} on the same nodes{stops}"
