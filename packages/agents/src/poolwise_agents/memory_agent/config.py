"""Configuration file of a memory agent: the control groups to watch and their slowdown tolerances."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from poolwise.errors import InputError, Problems
from poolwise.files.document import Document
from poolwise.files.fields import Label, Memory, Section, Time
from poolwise.files.validation import validate
from poolwise.performance.profiles import Profile, find_profile, read_profiles
from poolwise.quantities import MS, SECOND, US
from poolwise_agents.memory_agent.estimate import SlowdownClock

STATE = Path("/run/poolwise/memory-agent")
"""Default folder for saved limits; like the limits themselves, its content does not survive a reboot."""


class WatchedWorkloadSection(Section):
    """A workload to watch."""

    name: Label  # name in logs, metrics and measurements
    group: Annotated[
        str, Field(pattern=r"^/?[^/]+(/[^/]+)*$"), AfterValidator(lambda path: path.strip("/"))
    ]  # control group, as a path from the root of control groups
    tolerance: float = Field(default=0.0, ge=0, le=100)  # accepted slowdown, 0.25 for a quarter longer
    profile: str | None = None  # name of its sensitivity profile; without one a steep slowdown is assumed until measured
    progress: Path | None = None  # file in which its program writes a number that grows with completed work
    least_share: float = Field(default=0.25, ge=0, le=1)  # share of its memory that always stays local


class MemoryAgentFile(Section):
    """Configuration file of a memory agent."""

    version: int
    memory: Memory = Field(gt=0)  # local memory for all workloads together (MiB)
    reserve: Memory = 1024  # memory of the node that always remains for other programs (MiB)
    every: Time = Field(default=SECOND, ge=100 * MS)  # interval of control steps (ns)
    clock: SlowdownClock = "wall"  # "cpu" if page-ins use the processor (zram) and other programs compete for it
    page_in: Time = Field(default=15 * US, gt=0)  # time of a page-in if the kernel does not report it (ns)
    # age at which an observed slowdown is dropped unless observed again (ns)
    remember: Time = Field(default=300 * SECOND, gt=0)
    profiles: Path | None = None  # file of profiles in addition to those that come with Poolwise
    measurements: Path | None = None  # file to which measured slowdowns are written, for `poolwise profile fit`
    state: Path = STATE  # folder of the saved limits
    workload: Annotated[tuple[WatchedWorkloadSection, ...], Field(min_length=1)]


@dataclass(frozen=True)
class MemoryAgentConfig:
    """A configuration file and the profiles of its workloads, by name."""

    file: MemoryAgentFile
    profiles: dict[str, Profile]


def load_memory_agent(path: Path) -> MemoryAgentConfig:
    """Read the configuration of a memory agent; raises InputError for all problems, with lines and remedies."""
    document = Document.read(path)
    file = validate(MemoryAgentFile, document)
    own = [] if file.profiles is None else [*read_profiles(path.parent / file.profiles).values()]
    profiles, problems = dict[str, Profile](), Problems()
    for k, section in enumerate(file.workload):
        for field in ("name", "group"):
            value = getattr(section, field)
            with problems.attempt():
                if value in [getattr(other, field) for other in file.workload[:k]]:
                    raise document.error(("workload", k, field), f"duplicate {field} '{value}'", "list each workload once")
        with problems.attempt():
            _check_group(document, k, section.group, [other.group for other in file.workload])
        if section.profile is not None:
            with problems.attempt():
                profiles[section.name] = _profile(document, k, section.profile, own)
    problems.finish()
    return MemoryAgentConfig(file, profiles)


def _check_group(document: Document, k: int, group: str, others: list[str]) -> None:
    """Check that a group is not inside another listed group, and that its path does not leave the hierarchy."""
    if ".." in group.split("/") or "." in group.split("/"):
        raise document.error(
            ("workload", k, "group"), f"'{group}' is not a control group", "write its path from the root of control groups"
        )
    for other in others:
        if group.startswith(f"{other}/"):
            raise document.error(("workload", k, "group"), f"'{group}' is inside '{other}'", "list groups that do not nest")


def _profile(document: Document, k: int, name: str, own: list[Profile]) -> Profile:
    try:
        profile = find_profile(name, own)
    except InputError as error:
        raise document.error(("workload", k, "profile"), error.message, error.remedy) from None
    if not profile.is_monotone:
        problem = f"profile '{name}' is not monotone: some slowdown falls with less local memory"
        raise document.error(("workload", k, "profile"), problem, "fit the profile again (poolwise profile fit), or remove it")
    return profile
