"""Trace format of the job streams of the Slurm simulator: `.events` files of submissions with options of sbatch.

Source: the micro-cluster tutorial and `contribs/sim/sim_events.c` of the Slurm simulator of UB CCR (see `sbatch_options`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Machine, Workload
from poolwise.model.eligibility import CONSTRAINT
from poolwise.model.exclusive import EXCLUSIVE
from poolwise.quantities import UNKNOWN
from poolwise.registry import register
from poolwise.slurm import durations
from poolwise.traces.demand import Demand, Request, recorded_limits
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST, check_memory, with_unknown
from poolwise.traces.numbers import array_to_ns, round_up
from poolwise.traces.sacct import supported_constraint, supported_licenses
from poolwise.traces.sbatch_options import READ, InvalidOption, parse_options
from poolwise.traces.selection import occurring, select
from poolwise.traces.text_files import beginning, read_text, stem
from poolwise.traces.unreadable_rows import NumberedRows, read_readable

_LONGEST = 2**31  # seconds: submit + runtime stay below 2**63 ns
_MOST = {"nodes": 2**24, "cpus": 2**31, "gpus": 2**31}  # multiplied by the MiB on each node, they stay below 2**63
_SUBMISSION = "submit_batch_job"
_EVENT = re.compile(r"(?=.*(?:^|\s)-dt\s+\S)(?=.*(?:^|\s)-e\s+\S)[^|]*\|")
_ID = re.compile(r"job(?:id)?_([0-9]{1,15})")
_SIZES = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}
_LICENSE = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.@-]*)(?:[:*=]([0-9]{1,9}))?")
_CORRECT = "correct or remove the row"
_CONSTRAINTS = "constraint with alternatives, counts or features that the machine lacks, read without that part"


class _Event(NamedTuple):
    """One submission: seconds, numbers of nodes, CPUs and GPUs in total, MiB on each node; NaN for an unknown amount."""

    submit: float
    id: int | None
    ran: float
    limit: float
    nodes: int
    cpus: int
    gpus: int
    memory: float
    cancelled: bool
    exclusive: bool
    texts: dict[str, str]
    licenses: dict[str, int]
    dropped: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class EventLines(NumberedRows):
    """The lines of a job stream, without comments and empty lines."""

    text: list[str] = field(kw_only=True)

    def filter_rows(self, keep: BoolArray) -> EventLines:
        """Return the rows for which `keep`, (n_row,), is true, as if they were all rows of the trace."""
        return EventLines(self.path, self.line[keep], text=list(compress(self.text, keep)))


@register("formats", "slurm_events")
@dataclass(frozen=True)
class SlurmEvents(TraceFormat):
    """Job stream of the Slurm simulator (.events, plain or gzip): a line with a time and the options of sbatch per job.

    The line is `-dt SECONDS -e submit_batch_job | OPTIONS pseudo.job`; `#` begins a comment. Time starts at the first kept
    line. The options --ntasks, --cpus-per-task, --nodes and --ntasks-per-node determine the CPUs and nodes of a job; of a range
    of nodes, the smaller number counts. On whole nodes of c cores, a job with p CPUs takes at least ceil(p / c) nodes. --mem is
    on each node, as are --gres=gpu and --gpus-per-node. Licenses (--licenses=NAME:COUNT) become attributes; on a machine with
    licenses, those that it lacks are left out. A job with --exclusive shares its nodes with no other job. A job runs for
    `-sim-walltime` seconds, but not beyond its time limit; if `-sim-walltime` is negative or missing, it runs until the limit.
    Other options are left out and counted by name, as is --exclusive with a value. Job arrays, heterogeneous jobs and unknown
    options are unreadable lines, which are skipped and counted, unless `strict` is set. The id of a job is the number in its
    name (`-J jobid_17`); other jobs get numbers above these.

    Parameters
    ----------
    memory_unknown
        Treatment of jobs whose memory is unknown or 0: "zero", "exclude", or an amount per node such as "4 GiB".
    strict
        Raise an error for an unreadable row instead of skipping it.
    keep_requests
        Keep time limits unchanged, even below the runtime; missing ones are `units.UNKNOWN`.
    """

    memory_unknown: str = "zero"
    strict: bool = False
    keep_requests: bool = False

    def recognizes(self, path: Path) -> bool:
        """Return whether the first line is an event."""
        lines = beginning(path).decode("utf-8", "replace").split("\n")
        first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
        return _EVENT.match(first) is not None

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a job stream for a machine of whole or shared nodes."""
        check_memory(1.0, self.memory_unknown)
        numbered = [(k, line) for k, line in enumerate(read_text(path).split("\n"), start=1)]
        rows = [(k, line) for k, line in numbered if line.strip() and not line.lstrip().startswith("#")]
        if not rows:
            remedy = f"use a file with lines such as `-dt 0 -e {_SUBMISSION} | -n 4 -t 60 pseudo.job`"
            raise InputError("the trace contains no jobs", file=path, remedy=remedy)
        lines = EventLines(path, np.array([k for k, _ in rows], dtype=np.int64), text=[line for _, line in rows])
        return read_readable(lines, lambda some: self._read(some, machine), strict=self.strict)

    def _read(self, lines: EventLines, machine: Machine) -> Workload:
        events, others = _parse(lines)
        ran = np.array([event.ran for event in events], dtype=np.float64)
        limit = np.array([event.limit for event in events], dtype=np.float64)
        until = np.isnan(ran)
        reasons = {
            "cancelled at a given time (-cancel-in)": np.array([event.cancelled for event in events], dtype=np.bool_),
            "runs until its time limit, but has none": until & np.isnan(limit),
            "runtime 0": ran == 0,
        }
        if self.memory_unknown == "exclude":
            reasons["memory unknown or 0"] = np.array([not event.memory > 0 for event in events], dtype=np.bool_)
        keep, excluded = select(reasons, lines.path, "use a trace of jobs with run times")
        events = list(compress(events, keep))
        ran, limit, until = ran[keep], limit[keep], until[keep]
        runtime = np.fmin(np.where(until, limit, ran), limit)
        repaired = {
            "time limit unknown, set to the runtime": int(np.isnan(limit).sum()),
            "runtime above the time limit, set to the limit": int((ran > limit).sum()),
        }
        recorded = np.where(np.isnan(limit), UNKNOWN, array_to_ns(np.nan_to_num(limit)))
        requested = recorded if self.keep_requests else np.where(np.isnan(limit), array_to_ns(runtime), recorded)
        texts, described = _texts(events, machine)
        memory = np.nan_to_num(np.array([event.memory for event in events], dtype=np.float64))
        known = memory > 0
        request = _request(events, memory, texts.get("partition"), machine)
        licenses, lacking = supported_licenses(_license_columns(events), machine)
        repaired = {**occurring(repaired), **described, **request.repaired, **lacking, **_dropped(events)}
        amounts = {**request.amounts, "memory": with_unknown(request.amounts["memory"], known, self.memory_unknown, repaired)}
        submit = np.array([event.submit for event in events], dtype=np.float64)
        return Workload.of(
            array_to_ns(submit - submit.min()),
            array_to_ns(runtime),
            id=_ids(events),
            requested=requested,
            tasks=request.tasks,
            requests=amounts,
            attributes={
                **texts,
                **_exclusive(events),
                **licenses,
                **recorded_limits(machine, recorded, requested),
                "memory_known": known.astype(np.int64),
            },
            excluded={**others, **excluded},
            repaired=repaired,
            name=stem(lines.path),
        )


def _parse(lines: EventLines) -> tuple[list[_Event], dict[str, int]]:
    """Return the submissions, and counts of other events; raise UnreadableRows for the lines that cannot be read."""
    submissions: list[_Event] = []
    others, problems = Counter[str](), dict[int, InvalidOption]()
    seen: dict[int, int] = {}
    for k, text in enumerate(lines.text):
        try:
            kind, event = _event(text)
            if event is None:
                others[f"event {kind}, which is not a submission"] += 1
                continue
            if event.id is not None and event.id in seen:
                problem = f"job {event.id} is already in line {int(lines.line[seen[event.id]])}"
                raise InvalidOption(problem, "job-name", "renumber the jobs, or keep one line of each")
            if event.id is not None:
                seen[event.id] = k
            submissions.append(event)
        except InvalidOption as error:
            problems[k] = error
    if problems:
        first = next(iter(problems.values()))
        bad = np.zeros(len(lines), dtype=np.bool_)
        bad[[k for k, error in problems.items() if error.option == first.option]] = True
        lines.fail(bad, first.option or None, str(first), first.remedy)
    if not submissions:
        raise InputError(f"no event is a {_SUBMISSION}", file=lines.path, remedy="use a job stream with submissions")
    return submissions, dict(others)


def _event(text: str) -> tuple[str, _Event | None]:
    """Return the kind of an event, and the submission if it is one; raise InvalidOption."""
    head, bar, details = text.partition("|")
    words = head.split()
    fields = dict(zip(words[::2], words[1::2], strict=False))
    if not bar or len(words) % 2 or "-dt" not in fields or "-e" not in fields or len(fields) != 2:
        raise InvalidOption("the line is not an event", "", f"write -dt SECONDS -e {_SUBMISSION} | OPTIONS pseudo.job")
    submit = _real(fields["-dt"], "dt")
    if not 0 <= submit <= _LONGEST:
        raise InvalidOption(f"-dt {fields['-dt']} is not between 0 and 68 years", "dt", "write seconds since the start")
    if fields["-e"] != _SUBMISSION:
        return fields["-e"][:40], None
    options = parse_options(details)
    ran = _real(options.get("sim-walltime", options.get("sleep", "-1")), "sim-walltime")
    if ran > _LONGEST:
        raise InvalidOption(f"{ran:g} s exceeds 68 years", "sim-walltime", _CORRECT)
    alone = options.get("exclusive") == ""
    dropped = [f"option --{name}" for name in options if name not in READ and not (alone and name == "exclusive")]
    nodes, tasks = _nodes_and_tasks(options, dropped)
    cpus = tasks * _whole(options.get("cpus-per-task", "1"), "cpus-per-task", 1)
    gpus = _gpus(options, nodes, tasks, dropped)
    for name, amount in (("nodes", nodes), ("cpus", cpus), ("gpus", gpus)):
        if amount > _MOST[name]:
            raise InvalidOption(f"{amount} {name} are too many", name, _CORRECT)
    texts = {"user": options.get("uid", ""), CONSTRAINT: options.get("constraint", ""), "job_name": options.get("job-name", "")}
    texts |= {name: options.get(name, "") for name in ("account", "partition", "qos")}
    return _SUBMISSION, _Event(
        submit,
        _id(options),
        ran if ran >= 0 else math.nan,
        _limit(options),
        nodes,
        cpus,
        gpus,
        _memory(options, nodes, cpus, dropped),
        "cancel-in" in options,
        alone,
        texts,
        _licenses(options, dropped),
        tuple(dropped),
    )


def _nodes_and_tasks(options: Mapping[str, str], dropped: list[str]) -> tuple[int, int]:
    """Return the nodes and tasks of a job, as sbatch derives them: one task per node if no number of tasks is given."""
    on_each = _whole(options["ntasks-per-node"], "ntasks-per-node", 1) if "ntasks-per-node" in options else 0
    least, dash, _ = options.get("nodes", "0").partition("-")
    nodes = _whole(least, "nodes", 1) if "nodes" in options else 0
    if dash:
        dropped.append("upper end of the range in option --nodes")
    if "ntasks" in options:
        tasks = _whole(options["ntasks"], "ntasks", 1)
        return min(nodes or (-(-tasks // on_each) if on_each else 1), tasks), tasks
    nodes = max(nodes, 1)
    return nodes, nodes * max(on_each, 1)


def _gpus(options: Mapping[str, str], nodes: int, tasks: int, dropped: list[str]) -> int:
    """Return the GPUs of a job on all nodes; other generic resources, and types of GPUs, are dropped."""
    total = 0
    for name, factor in (("gres", nodes), ("gpus-per-node", nodes), ("gpus-per-task", tasks), ("gpus", 1)):
        for part in filter(None, options.get(name, "").split(",")):
            fields = part.removeprefix("gres/").removeprefix("gres:").split(":")
            if name == "gres" and fields.pop(0) != "gpu":
                dropped.append(f"option --gres={part.partition(':')[0][:40]}")
                continue
            amount = fields.pop() if fields and fields[-1][:1].isdigit() else "1"
            if fields:
                dropped.append(f"GPU type in option --{name}")
            total = max(total, _whole(amount, name, 0) * factor)
    return total


def _memory(options: Mapping[str, str], nodes: int, cpus: int, dropped: list[str]) -> float:
    """Return the memory (MiB) on each node, NaN if unknown; raise InvalidOption."""
    if "mem" in options and "mem-per-cpu" in options:
        raise InvalidOption("--mem and --mem-per-cpu exclude each other", "mem", "remove one of them")
    name = "mem" if "mem" in options else "mem-per-cpu"
    text = options.get(name, "")
    if not text:
        return math.nan
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGT]?)B?", text.upper())
    if match is None:
        raise InvalidOption(f"'{text[:40]}' is not an amount of memory", name, "write an amount such as 500M or 4G")
    amount = float(match[1]) * _SIZES[match[2]] * (1 if name == "mem" else -(-cpus // nodes))
    if amount > LARGEST:
        raise InvalidOption(f"{text} exceeds 2**31 MiB on a node", name, _CORRECT)
    if not amount:
        dropped.append(f"option --{name}=0 (all memory of a node)")
    return amount or math.nan


def _licenses(options: Mapping[str, str], dropped: list[str]) -> dict[str, int]:
    """Return name -> number of the licenses of a job, one without a count; alternatives ("|") are dropped."""
    words = [word.strip() for word in re.split("[,;]", options.get("licenses", "")) if word.strip()]
    matches = [match for word in words if (match := _LICENSE.fullmatch(word)) is not None]
    if len(matches) < len(words):
        dropped.append("option --licenses")
        return {}
    licenses = Counter[str]()
    for match in matches:
        licenses[match[1]] += int(match[2] or 1)
    return dict(licenses)


def _limit(options: Mapping[str, str]) -> float:
    """Return the time limit in seconds, NaN without one; raise InvalidOption."""
    try:
        limit = durations.seconds(options["time"]) if "time" in options else durations.FOREVER
    except ValueError as error:
        raise InvalidOption(str(error), "time", _CORRECT) from None
    if limit > _LONGEST:
        raise InvalidOption(f"{limit} s exceeds 68 years", "time", _CORRECT)
    return math.nan if limit in (durations.FOREVER, 0) else float(limit)


def _id(options: Mapping[str, str]) -> int | None:
    """Return the number of a job; None if its options do not have one."""
    for name in ("jid", "job-id"):
        if name in options:
            return _whole(options[name], name, 0)
    match = _ID.fullmatch(options.get("job-name", ""))
    return None if match is None else int(match[1])


def _real(text: str, name: str) -> float:
    if not re.fullmatch(r"[-+]?(?:[0-9]{1,15}\.?[0-9]{0,15}|\.[0-9]{1,15})", text):
        raise InvalidOption(f"'{text[:40]}' is not a number", name, "write a number of seconds")
    return float(text)


def _whole(text: str, name: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text) or int(text) < least:
        raise InvalidOption(f"'{text[:40]}' is not a whole number of at least {least}", name, _CORRECT)
    return int(text)


def _request(events: list[_Event], memory: FloatArray, partition: NDArray[np.str_] | None, machine: Machine) -> Request:
    """Return the requests of jobs; on whole nodes, a job gets at least the nodes that its options state."""
    parts, cpus, gpus = (
        np.array([getattr(event, name) for event in events], dtype=np.int64) for name in ("nodes", "cpus", "gpus")
    )
    request = Demand(parts, cpus * 1000, memory, gpus * 1000, partition).to_request(machine, separate_nodes=True)
    if "nodes" not in machine.resources:
        return request
    apart = parts >= request.amounts["nodes"]
    stated = {"nodes": parts, "memory": round_up(memory).astype(np.int64), "gpu": -(-gpus // parts)}
    amounts = {name: np.where(apart, stated.get(name, amount), amount) for name, amount in request.amounts.items()}
    return replace(request, amounts=amounts)


def _ids(events: list[_Event]) -> IntArray:
    """Return the ids, (n_job,): jobs without an id get numbers above all others, in their order."""
    following = iter(range(max((event.id for event in events if event.id is not None), default=0) + 1, 2**62))
    return np.array([next(following) if event.id is None else event.id for event in events], dtype=np.int64)


def _texts(events: list[_Event], machine: Machine) -> tuple[dict[str, NDArray[np.str_]], dict[str, int]]:
    """Return the text columns in which any job has a value, and counts of repaired values."""
    names = [name for name in events[0].texts if any(event.texts[name] for event in events)]
    texts = {name: np.array([event.texts[name] for event in events], dtype=np.str_) for name in names}
    if CONSTRAINT not in texts or not machine.node_sets:
        return texts, {}
    written = texts[CONSTRAINT]
    texts[CONSTRAINT] = np.array([supported_constraint(text, machine) for text in written.tolist()], dtype=np.str_)
    return texts, occurring({_CONSTRAINTS: int((texts[CONSTRAINT] != written).sum())})


def _license_columns(events: list[_Event]) -> dict[str, IntArray]:
    """Return name -> (n_job,) requested licenses."""
    names = sorted({name for event in events for name in event.licenses})
    return {name: np.array([event.licenses.get(name, 0) for event in events], dtype=np.int64) for name in names}


def _exclusive(events: list[_Event]) -> dict[str, IntArray]:
    """Return the column of exclusive jobs if there are any."""
    alone = np.array([event.exclusive for event in events], dtype=np.int64)
    return {EXCLUSIVE: alone} if alone.any() else {}


def _dropped(events: list[_Event]) -> dict[str, int]:
    """Return reason -> number of jobs, for the options that are left out."""

    def each() -> Iterator[str]:
        for event in events:
            yield from {f"{name}, left out" for name in event.dropped}

    return dict(sorted(Counter(each()).items()))
