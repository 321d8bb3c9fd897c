"""Nodes of a cluster as slurm.conf and the output of `sinfo` or `scontrol show node` describe them, and their leaf switches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from poolwise.errors import InputError
from poolwise.slurm import hostlist
from poolwise.slurm.conf import ConfSection, SlurmConf
from poolwise.slurm.dumps import rows

T = TypeVar("T")

NODES_REMEDY = "write it with `scontrol --oneliner show node`, or with `sinfo --Node --format='%N|%c|%m|%f|%G'`"
_SINFO = {
    "NODELIST": "name", "CPUS": "cpus", "MEMORY": "memory", "AVAIL_FEATURES": "features", "GRES": "gres", "WEIGHT": "weight",
}  # fmt: skip
_SCONTROL = {
    "NodeName": "name", "CPUTot": "cpus", "RealMemory": "memory", "AvailableFeatures": "features", "Gres": "gres",
    "MemSpecLimit": "reserved", "Weight": "weight",
}  # fmt: skip
_GPU = re.compile(r"gpu(?::(?P<type>[^:()]+))?(?::(?P<count>[0-9]+))?(?:\(.*\))?\Z")
_NO_GPUS: tuple[int, tuple[str, ...]] = (0, ())
_CORES = ("Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore", "Boards")


@dataclass(frozen=True)
class NodeSize:
    """Resources of a node.

    Attributes
    ----------
    cpus, memory, gpus : CPUs, MiB of memory that jobs can use, and GPUs of all types
    features : sorted features, including the types of GPUs
    source : line that describes the node, such as "slurm.conf:12"
    weight : weight; Slurm uses nodes of the lowest weight first
    """

    cpus: int
    memory: int
    gpus: int
    features: tuple[str, ...]
    source: str
    weight: int = 1


def node_sizes(conf: SlurmConf, listing: Path | None = None) -> dict[str, NodeSize]:
    """Return node name -> size, without nodes in state FUTURE; a listing replaces the values of its nodes in slurm.conf.

    Raises InputError with file, line and field.
    """
    sizes = {name: _size(node) for name, node in conf.by_host.items() if node.text("State").upper() != "FUTURE"}
    for name, size in {} if listing is None else dict(_listed(listing)).items():
        if name in sizes:  # a listing may lack what slurm.conf has
            conf_size = sizes[name]
            lacking = {name: getattr(conf_size, name) for name in ("cpus", "memory", "weight") if not getattr(size, name)}
            size = replace(size, **lacking)
        sizes[name] = size if size.weight else replace(size, weight=1)
    return sizes


def _size(node: ConfSection) -> NodeSize:
    sockets, per_board, cores, threads, boards = (node.whole(key, 1, 1) for key in _CORES)
    gpus, types = _gpus_and_types(node)
    features = {*node.text("Feature").split(","), *node.text("Features").split(","), *types} - {""}
    memory = max(node.whole("RealMemory", 1, 1) - node.whole("MemSpecLimit", 0), 1)
    cpus = node.whole("CPUs", boards * sockets * per_board * cores * threads, 1)
    return NodeSize(cpus, memory, gpus, tuple(sorted(features)), node.source("NodeName"), node.whole("Weight", 1))


def gpus_of_node(node: ConfSection) -> int:
    """Return the number of GPUs of all types in the Gres of a NodeName line; raises InputError with file and line."""
    return _gpus_and_types(node)[0]


def _gpus_and_types(node: ConfSection) -> tuple[int, tuple[str, ...]]:
    return node.read("Gres", _NO_GPUS, gpus_of, "write gpu:TYPE:COUNT")


def gpus_of(gres: str) -> tuple[int, tuple[str, ...]]:
    """Return the GPUs in generic resources such as "gpu:a100:4(S:0-1),shard:8", and their types; raises ValueError."""
    count, types = 0, list[str]()
    for part in re.split(r",(?![^()]*\))", gres):
        if part.split(":")[0].split("(")[0] != "gpu":
            continue
        match = _GPU.match(part)
        if match is None:
            raise ValueError(f"'{part}' is not a number of GPUs")
        kind, number = match["type"], match["count"]
        if kind is not None and number is None and kind.isdigit():
            kind, number = None, kind
        count += int(number or 1)
        types += [kind] if kind else []
    return count, tuple(types)


def _listed(path: Path) -> Iterator[tuple[str, NodeSize]]:
    """Yield the nodes in the output of `sinfo` or `scontrol show node`."""
    for line, row in _rows(path):

        def read(name: str, parse: Callable[[str], T], default: T, line: int = line, row: Mapping[str, str] = row) -> T:
            text = row.get(name, "")
            try:
                return default if text in ("", "N/A", "(null)", "none") else parse(text)
            except ValueError:
                raise InputError(f"cannot parse '{text}'", file=path, line=line, field=name, remedy=NODES_REMEDY) from None

        gpus, types = read("gres", gpus_of, _NO_GPUS)
        features = tuple(sorted({*read("features", lambda text: text, "").split(","), *types} - {""}))
        memory = read("memory", lambda text: int(text.rstrip("+")), 0) - read("reserved", int, 0)
        cpus, weight = read("cpus", lambda text: int(text.rstrip("+")), 0), read("weight", int, 0)
        size = NodeSize(cpus, memory, gpus, features, f"{path.name}:{line}", weight)
        yield from ((name, size) for name in read("name", hostlist.expand, list[str]()))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and values of each node, keyed by the names in `_SCONTROL` and `_SINFO`."""
    lines = [(number, text) for number, text in enumerate(_lines(path), start=1) if text.strip()]
    if not lines or not lines[0][1].startswith("NodeName="):
        for line, cells in rows(path, ("NODELIST", "CPUS", "MEMORY"), NODES_REMEDY):
            yield line, {_SINFO[name]: cell.strip() for name, cell in cells.items() if name in _SINFO}
        return
    nodes: list[tuple[int, dict[str, str]]] = []
    for number, text in lines:
        if text.startswith("NodeName="):
            nodes.append((number, {}))
        nodes[-1][1].update({_SCONTROL[key]: value for key, value in pairs(text).items() if key in _SCONTROL})
    yield from nodes


def pairs(text: str) -> dict[str, str]:
    """Return the KEY=VALUE words of a line of `scontrol show`, or of a file in this format."""
    return dict(word.partition("=")[::2] for word in text.split() if "=" in word)


def leaf_switches(path: Path) -> dict[str, tuple[str, int]]:
    """Return node name -> its leaf switch in a topology.conf, with the line of the switch; raises InputError."""
    leaf_of: dict[str, tuple[str, int]] = {}
    for number, values in _switches(path):
        try:
            name, nodes = values["switchname"], hostlist.expand(values.get("nodes", ""))
        except (KeyError, ValueError) as error:
            problem = str(error) if isinstance(error, ValueError) else "the line names no switch"
            remedy = "write SwitchName=s0 Nodes=n[001-016], or SwitchName=top Switches=s[0-3]"
            raise InputError(problem, file=path, line=number, field="SwitchName", remedy=remedy) from None
        leaf_of |= dict.fromkeys(nodes, (name, number))
    return leaf_of


def upper_switches(path: Path) -> list[int]:
    """Return the lines of the switches that are above other switches in a topology.conf."""
    return [number for number, values in _switches(path) if "switches" in values]


def _switches(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and values of each switch, with keys in lower case."""
    for number, text in enumerate(_lines(path), start=1):
        if text := text.partition("#")[0].strip():
            yield number, {key.lower(): value for key, value in pairs(text).items()}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path, remedy="check the path") from None
