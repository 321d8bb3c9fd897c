"""Logs in the Standard Workload Format as workloads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload
from poolwise.registry import register
from poolwise.traces import swf_rows as swf
from poolwise.traces.demand import share_out
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST, MemoryField, check_scale, substitute
from poolwise.traces.numbers import array_to_ns, round_up
from poolwise.traces.selection import select
from poolwise.traces.swf_rows import SwfLines, SwfRows
from poolwise.traces.text_files import beginning
from poolwise.traces.unreadable_rows import read_readable
from poolwise.units import UNKNOWN

_COLUMNS: dict[MemoryField, tuple[int, ...]] = {
    "used-then-requested": (swf.USED_MEMORY, swf.REQUESTED_MEMORY),
    "used": (swf.USED_MEMORY,),
    "requested": (swf.REQUESTED_MEMORY,),
}
_NAMES = {"user": swf.USER, "group": swf.GROUP, "queue": swf.QUEUE, "partition": swf.PARTITION}
_LONGEST = 2**31  # seconds: submit + runtime stay below 2**63 ns
_LARGEST = 2**31  # processors: times as many MiB they stay below 2**63


@register("formats", "swf")
@dataclass(frozen=True)
class SWF(TraceFormat):
    """Standard Workload Format, plain or gzip: one line of 18 numbers a job, comments begin with ";".

    Processors are the larger of allocated and requested; with c cores per node a job takes ceil(processors / c) whole nodes
    and memory per processor times min(processors, c) on each. On shared nodes it asks for its processors as cores of one node
    if any has as many, else of several (`demand.share_out`), and for memory by its cores there. Rows without submit time,
    runtime or processors are left out and counted; a requested time that is unknown or below the runtime becomes the runtime
    and is counted. Rows that cannot be read are left out and counted, unless `strict` is set. Time counts from the first row
    that is kept. A job larger than the machine is kept: to turn it away is up to the scheduler.

    Parameters
    ----------
    extra_columns
        Columns beyond the 18th that every row has; they are left out.
    memory_field
        "used-then-requested" (field 7, where unknown field 10), "used" or "requested"; all in KB per processor.
    memory_unknown
        What to do with a job whose memory is unknown or 0: "zero", "exclude", or an amount per node such as "4 GiB".
    memory_scale
        Factor on the memory of every job for which it is known.
    closed_loop
        Submit each job when its predecessor (field 17) is over and its user has thought (field 18), not when the log says.
    strict
        Whether a row that cannot be read is an error.
    keep_requests
        Leave requested times as they are, below the runtime too; unknown ones are `units.UNKNOWN`. Forecasts must not learn
        from a request how long a job will run.
    """

    extra_columns: int = 0
    memory_field: MemoryField = "used-then-requested"
    memory_unknown: str = "zero"
    memory_scale: float = 1.0
    closed_loop: bool = False
    strict: bool = False
    keep_requests: bool = False

    def recognises(self, path: Path) -> bool:
        """Whether the name says so, or the first row is 18 numbers or more."""
        if path.name.removesuffix(".gz").endswith(".swf"):
            return True
        for line in beginning(path).decode("utf-8", "replace").split("\n"):
            words = line.split()
            if words and not words[0].startswith(";"):
                return len(words) >= len(swf.FIELDS) and all(_is_number(word) for word in words[: len(swf.FIELDS)])
        return False

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a log for a machine of whole or of shared nodes."""
        if self.memory_field not in _COLUMNS:
            raise UnknownNameError.of("memory field", self.memory_field, _COLUMNS, field="memory_field")
        check_scale(self.memory_scale)
        substitute(self.memory_unknown)

        def read(lines: SwfLines) -> Workload:
            return self._read(swf.take_apart(lines, self.extra_columns), machine)

        found, skipped = read_readable(swf.read_lines(path), read, strict=self.strict)
        return replace(found, excluded={**skipped.counts, **found.excluded}, notes=tuple(skipped.notes))

    def _read(self, log: SwfRows, machine: Machine) -> Workload:
        path, unknown = log.path, substitute(self.memory_unknown)
        kilobytes = self._memory(log)
        log, kilobytes, excluded = _keep(log, kilobytes, exclude_unknown=unknown is None)
        runtime, requested, repaired = _times(log, keep=self.keep_requests)
        nodes, cores, more = processors_on(machine, self._processors(log))
        memory = self._memory_of_each(log, kilobytes, cores)
        repaired = {**repaired, **more}
        shared = {} if "nodes" in machine.resources else {"cores": cores}
        known = kilobytes > 0
        if unknown is not None and not known.all():
            memory = np.where(known, memory, unknown)
            repaired[f"memory unknown or 0, taken as {self.memory_unknown}"] = int((~known).sum())
        found = Workload.of(
            _submit(log),
            runtime,
            id=log.values[:, swf.JOB].astype(np.int64),
            requested=requested,
            requests={"nodes": nodes, **shared, "memory": memory},
            attributes={
                **_attributes(log),
                **(_feedback(log) if self.closed_loop else {}),
                "memory_known": known.astype(np.int64),
            },
            excluded=excluded,
            repaired=repaired,
            name=path.name.removesuffix(".gz").removesuffix(".swf"),
        )
        return replace(found, closed_loop=self.closed_loop)

    def _processors(self, log: SwfRows) -> IntArray:
        """(n_row,) processors."""
        for column in (swf.ALLOCATED, swf.REQUESTED_PROCESSORS):
            many = log.values[:, column] > _LARGEST
            log.refuse(many, column, "{value} are more than 2**31 processors", "correct or remove the row")
        return np.ceil(log.processors).astype(np.int64)

    def _memory_of_each(self, log: SwfRows, kilobytes: FloatArray, cores: IntArray) -> IntArray:
        """(n_row,) MiB on each node of a job, which has `cores` processors there."""
        memory = round_up(kilobytes * np.minimum(log.processors, cores) / 1024 * self.memory_scale)
        for column in _COLUMNS[self.memory_field]:
            log.refuse(
                (memory > LARGEST) & (log.values[:, column] > 0),
                column,
                "{value} KB per processor would be more than 2**31 MiB on each node",
                "if the log gives bytes per job, convert it: `poolwise trace convert --memory-bytes-per-job`",
            )
        return memory.astype(np.int64)

    def _memory(self, log: SwfRows) -> FloatArray:
        """(n_row,) KB per processor, 0 where unknown."""
        kilobytes = np.zeros(len(log), dtype=np.float64)
        for column in _COLUMNS[self.memory_field]:
            kilobytes = np.where(kilobytes > 0, kilobytes, np.maximum(log.values[:, column], 0.0))
        return kilobytes


def processors_on(machine: Machine, processors: IntArray) -> tuple[IntArray, IntArray, dict[str, int]]:
    """Nodes of jobs with (n_row,) processors, processors on each of them, and what was rounded up on shared nodes."""
    if "nodes" in machine.resources:
        cores = cores_per_node(machine)
        return -(-processors // cores), np.minimum(processors, cores), {}
    nodes, on_each = share_out(processors, machine)
    beyond = nodes * on_each - processors
    counts = {
        "processors rounded up to as many on each of several nodes": int((beyond > 0).sum()),
        "cores that these jobs have beyond their processors": int(beyond.sum()),
    }
    return nodes, on_each, {reason: count for reason, count in counts.items() if count}


def cores_per_node(machine: Machine) -> int:
    """Cores of a whole node of the machine, the least where racks differ; raises InputError if it does not say."""
    cores, groups = machine.per_node.get("cores"), machine.racks.nodes
    least = int(cores[groups].min()) if cores is not None and len(groups) else 0
    if least < 1:
        raise InputError(
            f"machine '{machine.name}' does not say how many cores a node has", field="cores", remedy="give its nodes cores"
        )
    return least


def _keep(log: SwfRows, kilobytes: FloatArray, *, exclude_unknown: bool) -> tuple[SwfRows, FloatArray, dict[str, int]]:
    """Leave out rows that no schedule can be made of; a row counts under the first reason that it gives."""
    reasons: dict[str, BoolArray] = {
        "submit time unknown": log.values[:, swf.SUBMIT] < 0,
        "runtime unknown or 0": log.values[:, swf.RUN] <= 0,
        "processors unknown or 0": log.processors <= 0,
        "memory unknown or 0": (kilobytes <= 0) if exclude_unknown else np.zeros(len(log), dtype=np.bool_),
    }
    keep, excluded = select(reasons, log.path, "give a trace with submit time, runtime and processors")
    return log.filter_rows(keep), kilobytes[keep], excluded


def _times(log: SwfRows, *, keep: bool = False) -> tuple[IntArray, IntArray, dict[str, int]]:
    """(n_row,) runtimes and requested times, ns, and how many of the latter were repaired; none if they are kept."""
    runtime, requested = log.values[:, swf.RUN], log.values[:, swf.REQUESTED_TIME]
    for field, column in ((swf.RUN, runtime), (swf.REQUESTED_TIME, requested)):
        log.refuse(
            column > _LONGEST, field, "{value} s are more than 68 years", "times are in seconds; correct or remove the row"
        )
    if keep:
        return array_to_ns(runtime), np.where(requested > 0, array_to_ns(np.maximum(requested, 0)), UNKNOWN), {}
    unknown = requested < 0
    below = ~unknown & (requested < runtime)
    counts = {
        "requested time unknown, taken as the runtime": int(unknown.sum()),
        "requested time below the runtime, taken as the runtime": int(below.sum()),
    }
    repaired = {reason: count for reason, count in counts.items() if count}
    return array_to_ns(runtime), array_to_ns(np.maximum(requested, runtime)), repaired


def _submit(log: SwfRows) -> IntArray:
    """(n_row,) ns since the first submission."""
    seconds = log.values[:, swf.SUBMIT]
    since = seconds - seconds.min()
    log.refuse(
        since > _LONGEST,
        swf.SUBMIT,
        "{value} is more than 68 years after the first job",
        "times are in seconds; correct the row",
    )
    return array_to_ns(since)


def _attributes(log: SwfRows) -> dict[str, IntArray | FloatArray]:
    """Columns that the log fills in: names of users, groups, queues and partitions (-1 unknown), wait_s (NaN unknown)."""
    found: dict[str, IntArray | FloatArray] = {
        name: log.values[:, column].astype(np.int64)
        for name, column in _NAMES.items()
        if bool((log.values[:, column] >= 0).any())
    }
    waited = log.values[:, swf.WAIT]
    if bool((waited >= 0).any()):
        found["wait_s"] = np.where(waited >= 0, waited, np.nan)
    return found


def _feedback(log: SwfRows) -> dict[str, IntArray | FloatArray]:
    """Predecessor of each job (-1 for none) and the seconds that its user thinks after that (-1 unknown)."""
    log.refuse(
        log.values[:, swf.THINK] > _LONGEST,
        swf.THINK,
        "{value} s are more than 68 years",
        "times are in seconds; correct the row",
    )
    return {"preceding": log.values[:, swf.PRECEDING].astype(np.int64), "think_s": log.values[:, swf.THINK]}


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False
