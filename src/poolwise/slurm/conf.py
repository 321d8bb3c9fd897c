"""`slurm.conf`: keys and values with their lines, nodes, and partitions.

Source: slurm.conf(5) of Slurm 22.05. Keys are case-insensitive; a backslash at the end of a line continues it; the last value
of a repeated key applies; files named by `Include` are read in place. An unknown key that resembles a known one is an error, so
that a typo cannot silently change a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from poolwise.errors import InputError
from poolwise.slurm import durations, hostlist
from poolwise.slurm.conf_lines import ConfLine, keys_of, read_conf_lines, written_keys
from poolwise.slurm.keys import check_key

T = TypeVar("T")

_DEFAULTS = "DEFAULT"


@dataclass(frozen=True)
class ConfValue:
    """A value, the line that sets it, and its key as written there ("" if no file sets the value)."""

    text: str
    file: Path
    line: int
    key: str = ""


@dataclass(frozen=True)
class ConfSection:
    """Keys and values of the file itself, or of one NodeName or PartitionName line.

    Attributes
    ----------
    name : node list or partition name, empty for the file itself
    file : file that contains the section
    values : key in lower case -> value
    """

    name: str
    file: Path
    values: Mapping[str, ConfValue]

    def __contains__(self, key: str) -> bool:
        return key.lower() in self.values

    def read(self, key: str, default: T, parse: Callable[[str], T], remedy: str) -> T:
        """Return a parsed value, or the default if it is not set; raises InputError with file and line if `parse` fails."""
        value = self.values.get(key.lower())
        if value is None:
            return default
        try:
            return parse(value.text)
        except ValueError as error:
            problem = str(error)
            if problem.startswith(("invalid literal", "could not")):
                problem = f"'{value.text}' is not a number"
            raise InputError(problem, file=value.file, line=value.line, field=key, remedy=remedy) from None

    def text(self, key: str, default: str = "") -> str:
        """Return a value as text."""
        return self.read(key, default, str, "")

    def whole(self, key: str, default: int, least: int = 0) -> int:
        """Return an integer; it must be at least `least`."""

        def parse(text: str) -> int:
            number = int(text)
            if number < least:
                raise ValueError(f"{number} is below {least}")
            return number

        return self.read(key, default, parse, "write an integer")

    def seconds(self, key: str, default: int) -> int:
        """Return a time in seconds, `durations.FOREVER` for an infinite one."""
        return self.read(key, default, durations.seconds, "write minutes, hours:minutes:seconds or days-hours")

    def yes(self, key: str, default: bool = False) -> bool:
        """Return YES or NO as a boolean."""

        def parse(text: str) -> bool:
            if text.upper() not in ("YES", "NO", "TRUE", "FALSE", "1", "0"):
                raise ValueError(f"'{text}' is neither YES nor NO")
            return text.upper() in ("YES", "TRUE", "1")

        return self.read(key, default, parse, "write YES or NO")

    def partition_priority(self, key: str) -> int:
        """Return PriorityTier or PriorityJobFactor of a partition; the older key Priority takes precedence over both."""
        return self.whole("Priority", self.whole(key, 1))

    def words(self, key: str) -> tuple[str, ...]:
        """Return comma-separated words in upper case."""
        return tuple(word.strip().upper() for word in self.text(key).split(",") if word.strip())

    def pairs(self, key: str) -> dict[str, str]:
        """Return comma-separated NAME=VALUE pairs; names are in lower case, and a name alone has an empty value."""
        parts = [part.strip().partition("=") for part in self.text(key).split(",") if part.strip()]
        return {name.strip().lower(): value.strip() for name, _, value in parts}

    def numbers(self, key: str) -> dict[str, float]:
        """Return comma-separated NAME=NUMBER pairs, with names in lower case."""
        return self.read(
            key, {}, lambda _: {name: float(value) for name, value in self.pairs(key).items()}, "write NAME=NUMBER"
        )

    def hostnames(self, key: str) -> list[str]:
        """Return the names in a list of hosts."""
        none: list[str] = []
        return self.read(key, none, hostlist.expand, "write nodes such as n[001-016]")

    def source(self, *keys: str) -> str:
        """Return the place of the first of some keys that is set, such as "slurm.conf:12"; empty if none is."""
        setting = next((self.values[key.lower()] for key in keys if key in self), None)
        return "" if setting is None else f"{setting.file.name}:{setting.line}"

    def refuse(self, key: str, message: str, remedy: str) -> InputError:
        """Return an error about a value, with its file and line."""
        setting = self.values[key.lower()]
        return InputError(message, file=setting.file, line=setting.line, field=key, remedy=remedy)


@dataclass(frozen=True)
class SlurmConf(ConfSection):
    """Contents of a `slurm.conf`.

    Attributes
    ----------
    nodes : NodeName lines, with the values of their DEFAULT lines
    partitions : partition name -> its line, with the values of the DEFAULT lines
    node_sets : name of a NodeSet -> its line
    """

    nodes: tuple[ConfSection, ...] = ()
    partitions: Mapping[str, ConfSection] = field(default_factory=dict)
    node_sets: Mapping[str, ConfSection] = field(default_factory=dict)

    @classmethod
    def read_file(cls, path: str | Path) -> SlurmConf:
        """Read a file; raises InputError with file and line for text that is not KEY=VALUE."""
        return _Reader(Path(path)).conf()

    @classmethod
    def of(cls, values: Mapping[str, object]) -> SlurmConf:
        """Return a configuration with the given values and without nodes and partitions."""
        settings = Path("settings")
        return cls("", settings, {key.lower(): ConfValue(str(value), settings, 0) for key, value in values.items()})

    def with_values(self, values: Mapping[str, object]) -> SlurmConf:
        """Return the configuration with some of the file's own values replaced."""
        return SlurmConf(
            "", self.file, {**self.values, **SlurmConf.of(values).values}, self.nodes, self.partitions, self.node_sets
        )

    @property
    def default_partition(self) -> str:
        """Partition of jobs that name none: the one with Default=YES, otherwise the first; empty without partitions."""
        chosen = [name for name, section in self.partitions.items() if section.yes("Default")]
        return chosen[-1] if chosen else next(iter(self.partitions), "")

    def hosts(self, partition: str) -> list[str]:
        """Return the names of a partition's nodes."""
        return self._members(self.partitions[partition], "Nodes")

    def _members(self, section: ConfSection, key: str) -> list[str]:
        if section.text(key).upper() == "ALL":
            return list(self.by_host)
        names: list[str] = []
        for name in section.hostnames(key):
            if name in self.node_sets:
                names += self._members(self.node_sets[name], "Nodes")
                feature = self.node_sets[name].text("Feature")
                having = (host for host, node in self.by_host.items() if feature in node.text("Feature").split(","))
                names += having if feature else ()
            elif name in self.by_host:
                names.append(name)
            else:
                raise section.refuse(key, f"node '{name}' is not defined", "define it with NodeName=")
        return list(dict.fromkeys(names))

    def amount(self, hosts: list[str], key: str) -> int:
        """Return the sum of a NodeName key (CPUs, RealMemory) over some nodes."""
        return sum(self.by_host[name].whole(key, 1) for name in hosts)

    @cached_property
    def by_host(self) -> dict[str, ConfSection]:
        """Node name -> its NodeName line."""
        sections: dict[str, ConfSection] = {}
        for section in self.nodes:
            for name in section.hostnames("NodeName"):
                sections[name] = section
        return sections


class _Reader:
    """Collects the values of a file and of the files that it includes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own: dict[str, ConfValue] = {}
        self.sections: dict[str, list[ConfSection]] = {"nodename": [], "partitionname": [], "nodeset": []}
        self.defaults: dict[str, dict[str, ConfValue]] = {kind: {} for kind in self.sections}
        for line in read_conf_lines(path, "give the path of a slurm.conf"):
            self._line(line)

    def conf(self) -> SlurmConf:
        nodes, partitions, sets = self.sections.values()
        by_name = ({section.name: section for section in sections} for sections in (partitions, sets))
        return SlurmConf("", self.path, self.own, tuple(nodes), *by_name)

    def _line(self, line: ConfLine) -> None:
        texts = keys_of(line, "write KEY=VALUE, and # before comments")
        written = written_keys(line)
        values = {key: ConfValue(text, line.file, line.number, written[key]) for key, text in texts.items()}
        first = next(iter(values))
        for key, value in values.items():
            check_key(first if first in self.sections else "", written[key], value.file, value.line)
        if first not in self.defaults:
            self.own |= values
        elif values[first].text.upper() == _DEFAULTS:
            self.defaults[first] |= {key: value for key, value in values.items() if key != first}
        else:
            self.sections[first].append(ConfSection(values[first].text, line.file, {**self.defaults[first], **values}))
