"""The file of a memory agent: which control groups it watches, and what each of them accepts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from poolwise.errors import InputError, Problems
from poolwise.files.document import Document
from poolwise.files.fields import Label, Memory, Section, Time, check_version, validate
from poolwise.live.memory_agent.estimate import SlowdownClock
from poolwise.performance.profiles import Profile, find_profile, read_profiles
from poolwise.units import MS, SECOND, US

STATE = Path("/run/poolwise/memory-agent")
"""Where limits from before the agent are on record by default: a folder that a restart of the computer empties, as limits."""


class WatchedWorkloadSection(Section):
    """A workload.

    Attributes
    ----------
    name : what logs, metrics and measurements call it
    group : its control group, as a path from the root of control groups
    tolerance : slowdown that it accepts, 0.25 for a quarter longer
    profile : name of its profile; without one it counts as steep until the agent has seen otherwise
    progress : file in which its program writes a number that grows as its work does
    least_share : share of its memory that always stays local
    """

    name: Label
    group: str = Field(pattern=r"^/?[^/]+(/[^/]+)*$")
    tolerance: float = Field(default=0.0, ge=0, le=100)
    profile: str | None = None
    progress: Path | None = None
    least_share: float = Field(default=0.25, ge=0, le=1)


class MemoryAgentFile(Section):
    """The file of a memory agent.

    Attributes
    ----------
    memory : MiB of local memory for all workloads together
    reserve : MiB of the computer's memory that are left to others at all times
    every : ns between two looks
    clock : what slowdowns are shares of: "wall", or "cpu" where page-ins are work of the processor (zram) and others use it too
    page_in : ns that a page takes to come in, where the kernel does not tell
    remember : ns after which a slowdown that was seen and not seen again is no longer believed
    profiles : file of profiles beside those that come with Poolwise
    measurements : file that takes what was seen, for `poolwise profile fit`
    state : folder for the record of what limits were before
    """

    version: int
    memory: Memory = Field(gt=0)
    reserve: Memory = 1024
    every: Time = Field(default=SECOND, ge=100 * MS)
    clock: SlowdownClock = "wall"
    page_in: Time = Field(default=15 * US, gt=0)
    remember: Time = Field(default=300 * SECOND, gt=0)
    profiles: Path | None = None
    measurements: Path | None = None
    state: Path = STATE
    workload: Annotated[tuple[WatchedWorkloadSection, ...], Field(min_length=1)]


@dataclass(frozen=True)
class MemoryAgentConfig:
    """A file with the profiles that it names, by workload."""

    file: MemoryAgentFile
    profiles: dict[str, Profile]


def load_memory_agent(path: Path) -> MemoryAgentConfig:
    """Read the file of a memory agent; raises InputError for all that is wrong with it, with lines and remedies."""
    document = Document.read(path)
    check_version(document, model=MemoryAgentFile)
    file = validate(MemoryAgentFile, document)
    own = [] if file.profiles is None else [*read_profiles(path.parent / file.profiles).values()]
    profiles, problems = dict[str, Profile](), Problems()
    for k, one in enumerate(file.workload):
        for field, value in (("name", one.name), ("group", one.group.strip("/"))):
            earlier = [getattr(other, field).strip("/") for other in file.workload[:k]]
            with problems.attempt():
                if value in earlier:
                    raise document.error(("workload", k, field), f"'{value}' is there twice", "name each workload once")
        with problems.attempt():
            _check_inside(document, k, one.group.strip("/"), [other.group.strip("/") for other in file.workload])
        if one.profile is not None:
            with problems.attempt():
                profiles[one.name] = _profile(document, k, one.profile, own)
    problems.finish()
    return MemoryAgentConfig(file, profiles)


def _check_inside(document: Document, k: int, group: str, others: list[str]) -> None:
    """See that no group lies in another that is named, and none leads out of the tree."""
    if ".." in group.split("/") or "." in group.split("/"):
        raise document.error(
            ("workload", k, "group"), f"'{group}' is no group", "write its path from the root of control groups"
        )
    for other in others:
        if group.startswith(f"{other}/"):
            raise document.error(("workload", k, "group"), f"'{group}' lies in '{other}'", "name groups beside each other")


def _profile(document: Document, k: int, name: str, own: list[Profile]) -> Profile:
    try:
        known = find_profile(name, own)
    except InputError as error:
        raise document.error(("workload", k, "profile"), error.message, error.remedy) from None
    if not known.is_monotone:
        problem = f"the profile '{name}' says that less memory helps"
        raise document.error(("workload", k, "profile"), problem, "fit it again (poolwise profile fit), or leave it out")
    return known
