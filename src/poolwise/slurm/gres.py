"""`gres.conf`: the generic resources of nodes, and the device files that make them up.

Source: gres.conf(5) of Slurm 22.05. slurm.conf states how many resources Slurm schedules; gres.conf describes them further.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from poolwise.errors import InputError, UnknownNameError
from poolwise.slurm import hostlist
from poolwise.slurm.conf_lines import ConfLine, keys_of, read_conf_lines, written_keys

KEYS: Final = (
    "AutoDetect", "Cores", "CPUs", "Count", "File", "Flags", "Links", "MultipleFiles", "Name", "NodeName", "Type",
)  # fmt: skip
"""Keys of gres.conf(5), Slurm 20.02 to 24.05."""
REMEDY: Final = "write lines such as NodeName=n[1-4] Name=gpu Type=a100 File=/dev/nvidia[0-3]"
_SIZES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class GresLine:
    """A line of gres.conf.

    Attributes
    ----------
    file, line : file and line number
    name, type : name and type of the resource, empty if not given
    count : number of resources on each node: the count that the line states, or the number of its device files
    nodes : nodes that have the resource; None for all
    detects : value of AutoDetect; empty without one
    """

    file: Path
    line: int
    name: str
    type: str
    count: int
    nodes: frozenset[str] | None
    detects: str


def read_gres(path: Path) -> list[GresLine]:
    """Read a gres.conf and the files that it includes; raises InputError with file, line and field."""
    return [_line(line) for line in read_conf_lines(path, "check the path")]


def gpu_lines(lines: Iterable[GresLine], host: str) -> list[GresLine]:
    """Return the lines that describe GPUs of a node."""
    return [line for line in lines if line.name == "gpu" and (line.nodes is None or host in line.nodes)]


def _line(line: ConfLine) -> GresLine:
    values, path, number = keys_of(line, REMEDY), line.file, line.number
    names = {key.lower(): key for key in KEYS}
    for key in values:
        if key not in names:
            written = written_keys(line)[key]
            raise UnknownNameError.of("key", written, KEYS, file=path, line=number, field=written)
    if "name" not in values and "autodetect" not in values:
        raise InputError("the line has no Name", file=path, line=number, field="Name", remedy=REMEDY)
    field = "NodeName"
    try:
        nodes = frozenset(hostlist.expand(values["nodename"])) if "nodename" in values else None
        field = "File"
        files = len(hostlist.expand(values.get("file") or values.get("multiplefiles") or ""))
        field = "Count"
        count = _count(values["count"]) if "count" in values else max(files, 1)
    except ValueError as error:
        raise InputError(str(error), file=path, line=number, field=field, remedy=REMEDY) from None
    if files and "count" in values and "file" in values and count != files:
        problem = f"Count={values['count']} differs from the {files} files of File"
        raise InputError(problem, file=path, line=number, field="Count", remedy="remove Count, or correct File")
    return GresLine(path, number, values.get("name", ""), values.get("type", ""), count, nodes, values.get("autodetect", ""))


def _count(text: str) -> int:
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text.upper())
    if match is None:
        raise ValueError(f"'{text}' is not a number of resources")
    return int(match[1]) * _SIZES[match[2]]
