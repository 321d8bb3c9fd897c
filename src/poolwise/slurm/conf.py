"""`slurm.conf`: keys and values, with the lines that say them, and its nodes and partitions.

Source: slurm.conf(5) of Slurm 22.05. Keys are known whatever their case; a line that ends in a backslash goes on; what is
said twice holds as said last; files that `Include` names are read where they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from poolwise.errors import InputError
from poolwise.slurm import durations, hostlist

T = TypeVar("T")

_PAIR = re.compile(r"\s*([A-Za-z][\w/]*)\s*=\s*(\"[^\"]*\"|\S*)")
_DEFAULTS = "DEFAULT"


@dataclass(frozen=True)
class Said:
    """A value and where it was said."""

    text: str
    file: Path
    line: int


@dataclass(frozen=True)
class ConfSection:
    """Keys and values that stand together: those of the file, or of one NodeName or PartitionName line.

    Attributes
    ----------
    name : name of the node list or partition, empty for the file's own
    file : where it stands
    said : key in lower case -> value
    """

    name: str
    file: Path
    said: Mapping[str, Said]

    def __contains__(self, key: str) -> bool:
        return key.lower() in self.said

    def read(self, key: str, default: T, parse: Callable[[str], T], remedy: str) -> T:
        """Read a value, the default where it is not said; raises InputError, with file and line, where `parse` does."""
        found = self.said.get(key.lower())
        if found is None:
            return default
        try:
            return parse(found.text)
        except ValueError as error:
            problem = (
                str(error) if not str(error).startswith(("invalid literal", "could not")) else f"'{found.text}' is no number"
            )
            raise InputError(problem, file=found.file, line=found.line, field=key, remedy=remedy) from None

    def text(self, key: str, default: str = "") -> str:
        """Text of a value."""
        return self.read(key, default, str, "")

    def whole(self, key: str, default: int, least: int = 0) -> int:
        """Whole number of at least `least`."""

        def parse(text: str) -> int:
            number = int(text)
            if number < least:
                raise ValueError(f"{number} is below {least}")
            return number

        return self.read(key, default, parse, "write a whole number")

    def seconds(self, key: str, default: int) -> int:
        """Time in seconds; `durations.FOREVER` where it has no end."""
        return self.read(key, default, durations.seconds, "write minutes, hours:minutes:seconds or days-hours")

    def yes(self, key: str, default: bool = False) -> bool:
        """YES or NO."""

        def parse(text: str) -> bool:
            if text.upper() not in ("YES", "NO", "TRUE", "FALSE", "1", "0"):
                raise ValueError(f"'{text}' is neither YES nor NO")
            return text.upper() in ("YES", "TRUE", "1")

        return self.read(key, default, parse, "write YES or NO")

    def words(self, key: str) -> tuple[str, ...]:
        """Words between commas, in upper case."""
        return tuple(word.strip().upper() for word in self.text(key).split(",") if word.strip())

    def pairs(self, key: str) -> dict[str, str]:
        """NAME=VALUE between commas, the name in lower case; a name alone has an empty value."""
        parts = [part.strip().partition("=") for part in self.text(key).split(",") if part.strip()]
        return {name.strip().lower(): value.strip() for name, _, value in parts}

    def numbers(self, key: str) -> dict[str, float]:
        """NAME=NUMBER between commas, the name in lower case."""
        return self.read(
            key, {}, lambda _: {name: float(value) for name, value in self.pairs(key).items()}, "write NAME=NUMBER"
        )

    def hostnames(self, key: str) -> list[str]:
        """Names in a list of hosts."""
        none: list[str] = []
        return self.read(key, none, hostlist.expand, "write nodes such as n[001-016]")

    def refuse(self, key: str, message: str, remedy: str) -> InputError:
        """Error about a value."""
        found = self.said[key.lower()]
        return InputError(message, file=found.file, line=found.line, field=key, remedy=remedy)


@dataclass(frozen=True)
class SlurmConf(ConfSection):
    """What a `slurm.conf` says.

    Attributes
    ----------
    nodes : NodeName lines, with what their DEFAULT lines say
    partitions : PartitionName -> its line, with what the DEFAULT lines say
    """

    nodes: tuple[ConfSection, ...] = ()
    partitions: Mapping[str, ConfSection] = field(default_factory=dict)

    @classmethod
    def read_file(cls, path: str | Path) -> SlurmConf:
        """Read a file; raises InputError naming file and line for what is no KEY=VALUE."""
        return _Reader(Path(path)).conf()

    @classmethod
    def of(cls, values: Mapping[str, object]) -> SlurmConf:
        """Return a configuration that says some values and has no nodes or partitions."""
        return cls("", Path("settings"), {key.lower(): Said(str(value), Path("settings"), 0) for key, value in values.items()})

    def with_values(self, values: Mapping[str, object]) -> SlurmConf:
        """Return the configuration with some of the file's own keys replaced."""
        return SlurmConf("", self.file, {**self.said, **SlurmConf.of(values).said}, self.nodes, self.partitions)

    @property
    def default_partition(self) -> str:
        """The partition of jobs that name none: the one that says Default=YES, else the first; empty without any."""
        chosen = [name for name, section in self.partitions.items() if section.yes("Default")]
        return chosen[-1] if chosen else next(iter(self.partitions), "")

    def hosts(self, partition: str) -> list[str]:
        """Names of a partition's nodes."""
        section = self.partitions[partition]
        known = self._hosts()
        if section.text("Nodes").upper() == "ALL":
            return list(known)
        for name in (names := section.hostnames("Nodes")):
            if name not in known:
                raise section.refuse("Nodes", f"node '{name}' is not defined", "define it by NodeName=")
        return names

    def amount(self, hosts: list[str], key: str) -> int:
        """Sum of a key of NodeName lines (CPUs, RealMemory) over some nodes."""
        known = self._hosts()
        return sum(known[name].whole(key, 1) for name in hosts)

    def _hosts(self) -> dict[str, ConfSection]:
        found: dict[str, ConfSection] = {}
        for section in self.nodes:
            for name in section.hostnames("NodeName"):
                found[name] = section
        return found


class _Reader:
    """Collects what the lines of a file, and of those that it includes, say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own: dict[str, Said] = {}
        self.nodes: list[ConfSection] = []
        self.partitions: dict[str, ConfSection] = {}
        self.defaults: dict[str, dict[str, Said]] = {"nodename": {}, "partitionname": {}}
        self._reading: list[Path] = []
        self._read(path)

    def conf(self) -> SlurmConf:
        return SlurmConf("", self.path, self.own, tuple(self.nodes), self.partitions)

    def _read(self, path: Path) -> None:
        if path in self._reading:
            raise InputError("the file includes itself", file=path, remedy="remove the Include line")
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=path, remedy="give the path of a slurm.conf") from None
        self._reading.append(path)
        at = 0
        while at < len(lines):
            first, text = at + 1, lines[at].partition("#")[0].rstrip()
            while text.endswith("\\") and at + 1 < len(lines):
                at += 1
                text = text[:-1] + lines[at].partition("#")[0].rstrip()
            at += 1
            if text.strip():
                self._line(text.strip(), path, first)
        self._reading.pop()

    def _line(self, text: str, path: Path, line: int) -> None:
        if text.lower().startswith("include "):
            self._read((path.parent / text.split(maxsplit=1)[1]).resolve())
            return
        said, end = {}, 0
        while end < len(text):
            found = _PAIR.match(text, end)
            if found is None:
                problem = f"'{text[end:].strip()[:40]}' is not KEY=VALUE"
                raise InputError(problem, file=path, line=line, remedy="write KEY=VALUE, and # before a comment")
            said[found[1].lower()] = Said(found[2].strip('"'), path, line)
            end = found.end()
        first = next(iter(said))
        if first not in self.defaults:
            self.own |= said
        elif said[first].text.upper() == _DEFAULTS:
            self.defaults[first] |= {key: value for key, value in said.items() if key != first}
        else:
            section = ConfSection(said[first].text, path, {**self.defaults[first], **said})
            if first == "nodename":
                self.nodes.append(section)
            else:
                self.partitions[section.name] = section
