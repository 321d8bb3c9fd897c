"""Device profiles: mean times of kinds of jobs with a local device, a remote device, and a loaded network, in CSV files.

Source: Amaral et al., DRMaestro, "The inference engine" and Figure 3; flow-placement spec, "Simulation".
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from poolwise.errors import InputError
from poolwise.model import Placement, Schedule
from poolwise.performance.csv_table import number, read_once, table_rows
from poolwise.performance.link_load import sites
from poolwise.quantities import SECOND

NUMBERS = (
    "local_s", "spread", "remote_s", "loaded_s", "goal_s", "importance", "link_mb_s", "cpu_sensitivity",
    "device_sensitivity", "cores", "memory_gib",
)  # fmt: skip
COLUMNS = ("kind", *NUMBERS, "assumed", "source")


@dataclass(frozen=True)
class DeviceProfile:
    """Profile of a kind of job that uses a device.

    Attributes
    ----------
    kind : name
    local_s : mean seconds of an exclusive run with a device local to the processor
    spread : standard deviation of the time over its mean
    remote_s, loaded_s : mean seconds of an exclusive run with a remote device, over an idle and a fully loaded network
    goal_s : desired completion time, tau
    importance : z of the utility, from 1 (a missed goal counts fully) to 10 (it does not count)
    link_mb_s : MB/s that a run sends over a link while its device is remote
    cpu_sensitivity, device_sensitivity : relative slowdown if other runs use all other cores of the run's node, and all other
        devices of its device's node
    cores, memory_gib : requests of a task
    assumed : names of the numbers that were not measured
    source : source of the other numbers
    """

    kind: str
    local_s: float
    spread: float
    remote_s: float
    loaded_s: float
    goal_s: float
    importance: float
    link_mb_s: float
    cpu_sensitivity: float
    device_sensitivity: float
    cores: int
    memory_gib: float
    assumed: tuple[str, ...] = ()
    source: str = ""

    @property
    def sensitivity(self) -> float:
        """Relative slowdown of the remote time by a fully loaded link."""
        return self.loaded_s / self.remote_s - 1.0

    def time(self, remote: bool) -> float:
        """Return the mean seconds of an exclusive run on an idle network."""
        return self.remote_s if remote else self.local_s


def read_device_profiles(reference: str | Path) -> Mapping[str, DeviceProfile]:
    """Read a CSV file of profiles, or "catalog:NAME" for a shipped one.

    Columns: kind, the numbers, `assumed` (names of the columns that are guesses, with spaces between) and `source`. Lines
    that begin with # are comments.

    Parameters
    ----------
    reference
        CSV file, or "catalog:NAME" for a shipped one.

    Returns
    -------
    Mapping
        Kind of job -> `DeviceProfile`.

    Raises
    ------
    InputError
        The file is invalid; the error names file, line and field.

    Examples
    --------
    >>> import poolwise
    >>> poolwise.read_device_profiles("catalog:rodinia")["nw"].kind
    'nw'
    """
    return read_once("device_profiles", reference, _read, "profile file")


def device_profiles_csv(profiles: Iterable[DeviceProfile]) -> str:
    """Write profiles in the format that `read_device_profiles` reads."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for profile in profiles:
        numbers = [f"{getattr(profile, name):.12g}" for name in NUMBERS]
        rows.writerow([profile.kind, *numbers, " ".join(profile.assumed), profile.source])
    return text.getvalue()


def learn_device_profiles(schedule: Schedule, profiles: Mapping[str, DeviceProfile]) -> dict[str, DeviceProfile]:
    """Replace the times in profiles with the mean times of finished jobs of each kind, for each location of their devices.

    A kind keeps its time for a location at which none of its jobs ran. The relative slowdown by a loaded network never changes.
    Jobs of unknown kinds are ignored: they have no goal, and their cost is the neutral 1.

    Source: "The inference engine" (mean completion time of a type in each state of the cluster).

    Parameters
    ----------
    schedule
        Finished jobs; their kinds are the attribute "kind" of the workload.
    profiles
        Kind -> profile to update.

    Returns
    -------
    dict
        Kind -> new profile.

    Examples
    --------
    >>> import poolwise
    >>> profiles = poolwise.read_device_profiles("catalog:rodinia")
    >>> workload = poolwise.Workload.of("0 s", "1 h")
    >>> schedule = poolwise.simulate(workload, poolwise.Machine.flat(1), engine="reference").schedule
    >>> learned = poolwise.learn_device_profiles(schedule, profiles)  # no job has a kind, so nothing is learned
    >>> learned["nw"].local_s == profiles["nw"].local_s
    True
    """
    kinds = schedule.workload.attributes.get("kind")
    seen: dict[tuple[str, bool], list[int]] = {}
    for run in np.flatnonzero(schedule.finished).tolist() if kinds is not None else ():
        placement = Placement.of([(0, *row) for row in schedule.placement_of(run)])
        state = str(np.asarray(kinds)[schedule.job[run]]), sites(placement, schedule.machine).remote
        seen.setdefault(state, []).append(int(schedule.end[run] - schedule.start[run]))
    learned_profiles = {}
    for kind, profile in profiles.items():
        local, remote = (
            float(np.mean(seen[kind, away])) / SECOND if (kind, away) in seen else profile.time(away) for away in (False, True)
        )
        loaded = remote * (1.0 + profile.sensitivity)
        learned = {name for name, away in (("local_s", False), ("remote_s", True)) if (kind, away) in seen}
        assumed = tuple(name for name in profile.assumed if name not in learned)
        learned_profiles[kind] = replace(profile, local_s=local, remote_s=remote, loaded_s=loaded, assumed=assumed)
    return learned_profiles


def _read(path: Path) -> Mapping[str, DeviceProfile]:
    profiles: dict[str, DeviceProfile] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in table_rows(file, path, COLUMNS):
            profile = _profile(row, path, line)
            if profile.kind in profiles:
                problem = f"duplicate kind '{profile.kind}'"
                raise InputError(problem, file=path, line=line, field="kind", remedy="keep one of them")
            profiles[profile.kind] = profile
    return MappingProxyType(profiles)


def _profile(row: dict[str, str], path: Path, line: int) -> DeviceProfile:
    values = {name: number(row[name], path, line, name, least=0) for name in NUMBERS}
    assumed = tuple((row["assumed"] or "").split())
    for name in assumed:
        if name not in NUMBERS:
            problem = f"'{name}' is not a number of a profile"
            raise InputError(problem, file=path, line=line, field="assumed", remedy=f"known: {', '.join(NUMBERS)}")
    for name in ("local_s", "remote_s", "loaded_s", "goal_s"):
        if not values[name] > 0:
            raise InputError("a time must be above 0", file=path, line=line, field=name, remedy="give seconds")
    if not 1 <= values["importance"] <= 10:
        raise InputError("importance must be from 1 to 10", file=path, line=line, field="importance", remedy="1 counts fully")
    if values["cores"] != int(values["cores"]):
        raise InputError("cores must be a whole number", file=path, line=line, field="cores", remedy="round it up")
    numbers = {name: value for name, value in values.items() if name != "cores"}
    return DeviceProfile(row["kind"], cores=int(values["cores"]), **numbers, assumed=assumed, source=row["source"] or "")
