"""Trace format of logs in the Standard Workload Format."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload
from poolwise.quantities import SECOND, UNKNOWN
from poolwise.registry import register
from poolwise.traces import swf_rows as swf
from poolwise.traces.demand import recorded_limits, split_over_nodes
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST, MemoryField, check_memory, with_unknown
from poolwise.traces.numbers import array_to_ns, round_up
from poolwise.traces.selection import occurring, select
from poolwise.traces.swf_rows import SwfLines, SwfRows
from poolwise.traces.text_files import beginning, stem
from poolwise.traces.unreadable_rows import read_readable

_COLUMNS: dict[MemoryField, tuple[int, ...]] = {
    "used-then-requested": (swf.USED_MEMORY, swf.REQUESTED_MEMORY),
    "used": (swf.USED_MEMORY,),
    "requested": (swf.REQUESTED_MEMORY,),
}
_NAMES = {"user": swf.USER, "group": swf.GROUP, "queue": swf.QUEUE, "partition": swf.PARTITION}
_LONGEST = 2**31  # seconds: submit + runtime stay below 2**63 ns
_IN_SECONDS = "times are in seconds; correct the row"
_START = re.compile(r"\s*UnixStartTime:\s*([0-9]{1,11})\s*\Z")
_LARGEST = 2**31  # processors; multiplied by the MiB on each, they stay below 2**63


@register("formats", "swf")
@dataclass(frozen=True)
class SWF(TraceFormat):
    """Standard Workload Format, plain or gzip: one line of 18 numbers per job; comments begin with ";".

    The number of processors is the larger of allocated and requested. On whole nodes of c cores, a job takes ceil(processors /
    c) nodes, with memory per processor times min(processors, c) on each. On shared nodes, it requests its processors as cores
    of one node if any node has as many, or else of several nodes (`demand.split_over_nodes`), and memory in proportion to its
    cores there. Rows without submit time, runtime or processors are excluded and counted. A requested time that is unknown or
    below the runtime is replaced by the runtime and counted. Unreadable rows are skipped and counted, unless `strict` is set.
    Time starts at the first kept row. Jobs larger than the machine are kept; the scheduler rejects them.

    Parameters
    ----------
    extra_columns
        Number of columns after the 18th in every row; they are ignored.
    memory_field
        "used-then-requested" (field 7, or field 10 if unknown), "used" or "requested"; all in KB per processor.
    memory_unknown
        Treatment of jobs whose memory is unknown or 0: "zero", "exclude", or an amount per node such as "4 GiB".
    memory_scale
        Factor applied to known memory.
    closed_loop
        Submit each job once its predecessor (field 17) has finished and its user's think time (field 18) has passed, not at
        the time in the log.
    strict
        Raise an error for an unreadable row instead of skipping it.
    keep_requests
        Keep requested times unchanged, even below the runtime; unknown ones are `units.UNKNOWN`. Forecasts use this, because
        they must not learn a job's runtime from its request.
    """

    extra_columns: int = 0
    memory_field: MemoryField = "used-then-requested"
    memory_unknown: str = "zero"
    memory_scale: float = 1.0
    closed_loop: bool = False
    strict: bool = False
    keep_requests: bool = False

    def recognizes(self, path: Path) -> bool:
        """Return whether the file name ends in ".swf", or the first row has at least 18 numbers."""
        if path.name.removesuffix(".gz").endswith(".swf"):
            return True
        for line in beginning(path).decode("utf-8", "replace").split("\n"):
            words = line.split()
            if words and not words[0].startswith(";"):
                return len(words) >= len(swf.FIELDS) and all(_is_number(word) for word in words[: len(swf.FIELDS)])
        return False

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a log for a machine of whole or shared nodes."""
        if self.memory_field not in _COLUMNS:
            raise UnknownNameError.of("memory field", self.memory_field, _COLUMNS, field="memory_field")
        check_memory(self.memory_scale, self.memory_unknown)

        def read(lines: SwfLines) -> Workload:
            return self._read(swf.parse_rows(lines, self.extra_columns), machine)

        return read_readable(swf.read_lines(path), read, strict=self.strict)

    def _read(self, log: SwfRows, machine: Machine) -> Workload:
        path = log.path
        kilobytes = self._memory(log)
        log, kilobytes, excluded = _keep(log, kilobytes, exclude_unknown=self.memory_unknown == "exclude")
        runtime, requested, recorded, repaired = _times(log, keep=self.keep_requests)
        nodes, cores, rounded = split_processors(machine, self._processors(log))
        memory = self._memory_per_node(log, kilobytes, cores)
        repaired = {**repaired, **rounded}
        shared = {} if "nodes" in machine.resources else {"cores": cores}
        known = kilobytes > 0
        memory = with_unknown(memory, known, self.memory_unknown, repaired)
        workload = Workload.of(
            _submit(log),
            runtime,
            id=log.values[:, swf.JOB].astype(np.int64),
            requested=requested,
            requests={"nodes": nodes, **shared, "memory": memory},
            attributes={
                **_attributes(log),
                **(_feedback(log) if self.closed_loop else {}),
                **recorded_limits(machine, recorded, requested),
                "memory_known": known.astype(np.int64),
            },
            excluded=excluded,
            repaired=repaired,
            epoch=_epoch(log),
            name=stem(path),
        )
        return replace(workload, closed_loop=self.closed_loop)

    def _processors(self, log: SwfRows) -> IntArray:
        """Return the number of processors of each job, (n_row,)."""
        for column in (swf.ALLOCATED, swf.REQUESTED_PROCESSORS):
            many = log.values[:, column] > _LARGEST
            log.refuse(many, column, "{value} exceeds 2**31 processors", "correct or remove the row")
        return np.ceil(log.processors).astype(np.int64)

    def _memory_per_node(self, log: SwfRows, kilobytes: FloatArray, cores: IntArray) -> IntArray:
        """Return the memory (MiB) on each node of a job that uses `cores` processors per node, (n_row,)."""
        memory = round_up(kilobytes * np.minimum(log.processors, cores) / 1024 * self.memory_scale)
        for column in _COLUMNS[self.memory_field]:
            log.refuse(
                (memory > LARGEST) & (log.values[:, column] > 0),
                column,
                "{value} KB per processor exceeds 2**31 MiB on each node",
                "if the log gives bytes per job, convert it: `poolwise trace convert --memory-bytes-per-job`",
            )
        return memory.astype(np.int64)

    def _memory(self, log: SwfRows) -> FloatArray:
        """Return the memory (KB) per processor, (n_row,), 0 where unknown."""
        kilobytes = np.zeros(len(log), dtype=np.float64)
        for column in _COLUMNS[self.memory_field]:
            kilobytes = np.where(kilobytes > 0, kilobytes, np.maximum(log.values[:, column], 0.0))
        return kilobytes


def split_processors(machine: Machine, processors: IntArray) -> tuple[IntArray, IntArray, dict[str, int]]:
    """Return the nodes of jobs, (n_row,), their processors on each node, and counts of rounding on shared nodes."""
    if "nodes" in machine.resources:
        cores = cores_per_node(machine)
        return -(-processors // cores), np.minimum(processors, cores), {}
    nodes, on_each = split_over_nodes(processors, machine)
    surplus = nodes * on_each - processors
    counts = {
        "processors rounded up to the same number on each of several nodes": int((surplus > 0).sum()),
        "cores of these jobs in excess of their processors": int(surplus.sum()),
    }
    return nodes, on_each, occurring(counts)


def cores_per_node(machine: Machine) -> int:
    """Return the cores of a whole node, the smallest number if racks differ; raise InputError if the machine has none."""
    cores, groups = machine.per_node.get("cores"), machine.racks.nodes
    least = int(cores[groups].min()) if cores is not None and len(groups) else 0
    if least < 1:
        problem = f"machine '{machine.name}' does not state the cores of a node"
        raise InputError(problem, field="cores", remedy="give its nodes cores")
    return least


def _keep(log: SwfRows, kilobytes: FloatArray, *, exclude_unknown: bool) -> tuple[SwfRows, FloatArray, dict[str, int]]:
    """Exclude rows that cannot be scheduled; count each under the first reason that applies."""
    reasons: dict[str, BoolArray] = {
        "submit time unknown": log.values[:, swf.SUBMIT] < 0,
        "runtime unknown or 0": log.values[:, swf.RUN] <= 0,
        "processors unknown or 0": log.processors <= 0,
        "memory unknown or 0": (kilobytes <= 0) if exclude_unknown else np.zeros(len(log), dtype=np.bool_),
    }
    keep, excluded = select(reasons, log.path, "use a trace with submit times, runtimes and processors")
    return log.filter_rows(keep), kilobytes[keep], excluded


def _times(log: SwfRows, *, keep: bool = False) -> tuple[IntArray, IntArray, IntArray, dict[str, int]]:
    """Return runtimes, requested times and recorded limits, (n_row,) ns each, and counts of repaired requested times.

    A recorded limit that is missing is `units.UNKNOWN`. With `keep`, requested times are the recorded limits.
    """
    runtime, requested = log.values[:, swf.RUN], log.values[:, swf.REQUESTED_TIME]
    for field, column in ((swf.RUN, runtime), (swf.REQUESTED_TIME, requested)):
        log.refuse(column > _LONGEST, field, "{value} s exceeds 68 years", "times are in seconds; correct or remove the row")
    recorded = np.where(requested > 0, array_to_ns(np.maximum(requested, 0)), UNKNOWN)
    if keep:
        return array_to_ns(runtime), recorded, recorded, {}
    unknown = requested < 0
    below = ~unknown & (requested < runtime)
    counts = {
        "requested time unknown, set to the runtime": int(unknown.sum()),
        "requested time below the runtime, set to the runtime": int(below.sum()),
    }
    return array_to_ns(runtime), array_to_ns(np.maximum(requested, runtime)), recorded, occurring(counts)


def _submit(log: SwfRows) -> IntArray:
    """Return the times since the first submission, (n_row,) ns."""
    seconds = log.values[:, swf.SUBMIT]
    since = seconds - seconds.min()
    log.refuse(since > _LONGEST, swf.SUBMIT, "{value} is more than 68 years after the first job", _IN_SECONDS)
    return array_to_ns(since)


def _epoch(log: SwfRows) -> int | None:
    """Return the first submission in ns since 1970, if the header has a UnixStartTime."""
    start = next((match for match in map(_START.match, log.comments) if match), None)
    return None if start is None else (int(start[1]) + int(log.values[:, swf.SUBMIT].min())) * SECOND


def _attributes(log: SwfRows) -> dict[str, IntArray | FloatArray]:
    """Return the known ids of users, groups, queues and partitions (-1 if unknown), and wait_s (NaN if unknown)."""
    attributes: dict[str, IntArray | FloatArray] = {
        name: log.values[:, column].astype(np.int64)
        for name, column in _NAMES.items()
        if bool((log.values[:, column] >= 0).any())
    }
    waited = log.values[:, swf.WAIT]
    if bool((waited >= 0).any()):
        attributes["wait_s"] = np.where(waited >= 0, waited, np.nan)
    return attributes


def _feedback(log: SwfRows) -> dict[str, IntArray | FloatArray]:
    """Return the predecessor of each job (-1 for none) and the think time after it in s (-1 if unknown)."""
    log.refuse(log.values[:, swf.THINK] > _LONGEST, swf.THINK, "{value} s exceeds 68 years", _IN_SECONDS)
    return {"preceding": log.values[:, swf.PRECEDING].astype(np.int64), "think_s": log.values[:, swf.THINK]}


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False
