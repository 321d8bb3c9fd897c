"""Trace format of Slurm accounting exports, as written by `sacct --parsable2`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload
from poolwise.model.eligibility import CONSTRAINT
from poolwise.model.licenses import LICENSE
from poolwise.quantities import MINUTE, SECOND, UNKNOWN
from poolwise.registry import register
from poolwise.traces import sacct_rows, time_of_day
from poolwise.traces.demand import Demand, recorded_limits
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST, MemoryField, check_memory, with_unknown
from poolwise.traces.sacct_jobs import add_missing_columns, split_jobs_and_steps
from poolwise.traces.sacct_rows import SacctRows
from poolwise.traces.selection import occurring, select
from poolwise.traces.text_files import beginning, stem
from poolwise.traces.unreadable_rows import read_readable

_FIELDS: dict[MemoryField, tuple[bool, bool]] = {
    "used-then-requested": (True, True),
    "used": (True, False),
    "requested": (False, True),
}
"""Memory field -> whether it reads MaxRSS, and whether it reads ReqMem."""

_WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")
_RUNNING = ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED")
_ENDED = (
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "DEADLINE", "BOOT_FAIL",
    "LAUNCH_FAILED", "RECONFIG_FAIL", "REVOKED",
)  # fmt: skip
_TEXTS = {
    "User": "user",
    "Account": "account",
    "Partition": "partition",
    "QOS": "qos",
    "Constraints": "constraint",
    "JobID": "job_name",
}
_PARTS = "component of a heterogeneous job, treated as a separate job"
_CONSTRAINTS = "constraint with alternatives, counts or features that the machine lacks, read without that part"
_LICENSES = "license that the machine lacks, ignored"
_LONGEST = 2**31  # seconds: submit + runtime stay below 2**63 ns
_LARGEST = {"NNodes": 2**24, "AllocCPUS": 2**31}  # multiplied by the MiB on each, they stay below 2**63
_CORRECT = "correct or remove the row"


@register("formats", "sacct")
@dataclass(frozen=True)
class Sacct(TraceFormat):
    """Slurm accounting: `sacct --parsable2` with JobIDRaw, Submit, Start, State, NNodes, AllocCPUS, ElapsedRaw and more.

    JobID, NCPUS, AllocNodes, Elapsed (or Start and End) and Timelimit are accepted instead of JobIDRaw, AllocCPUS, NNodes,
    ElapsedRaw and TimelimitRaw. User, Account, Partition, QOS and JobID become attributes of the jobs if they are exported. If
    a job has several rows (--duplicates), the last run is read, as sacct reports it without that option; the other rows are
    counted. Unreadable rows are skipped and counted, unless `strict` is set.

    A job that ran is read regardless of its final state, because it held its nodes. Jobs that were waiting or running when
    exported, or never ran, are excluded and counted. The runtime is ElapsedRaw and the requested time TimelimitRaw. If the
    limit is Partition_Limit, it is the longest time of the partition if the machine limits it. If it is unknown, UNLIMITED or
    below the runtime, it is replaced by the runtime. Both are counted.

    Memory used on a node is taken from the step that used most: its MaxRSS, which belongs to its largest task, times its tasks
    per node. Concurrent steps used more in total; choose memory_field="requested" if they are common. ReqMem is per node ("n"),
    per CPU ("c"), or for the whole job. On whole nodes of c cores, a job with p CPUs takes ceil(p / c) nodes, or more if its
    GPUs (gres/gpu in AllocTRES) need them. On shared nodes, it requests as many nodes as it had, or more if no node of the
    machine is as large. Licenses (license/NAME in AllocTRES) become attributes. If the machine has licenses, jobs request only
    those; the others are counted.

    Parameters
    ----------
    memory_field
        "used-then-requested" (MaxRSS, or ReqMem if unknown), "used" or "requested".
    memory_unknown
        Treatment of jobs whose memory is unknown or 0: "zero", "exclude", or an amount per node such as "4 GiB".
    memory_scale
        Factor applied to known memory.
    timezone
        Time zone of the times, which sacct writes in local time: "UTC" if it ran with TZ=UTC, else such as "Europe/Berlin". It
        does not affect times with an offset and seconds since 1970 (SLURM_TIME_FORMAT=%s).
    strict
        Raise an error for an unreadable row instead of skipping it.
    keep_requests
        Keep time limits unchanged, even below the runtime; missing ones are `units.UNKNOWN`.
    """

    memory_field: MemoryField = "used-then-requested"
    memory_unknown: str = "zero"
    memory_scale: float = 1.0
    timezone: str = "UTC"
    strict: bool = False
    keep_requests: bool = False

    def recognizes(self, path: Path) -> bool:
        """Return whether the first line is a header of sacct."""
        first = beginning(path).partition(b"\n")[0].decode("utf-8-sig", "replace").strip()
        return sacct_rows.delimiter_of(first) is not None

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read an export for a machine of whole or shared nodes."""
        if self.memory_field not in _FIELDS:
            raise UnknownNameError.of("memory field", self.memory_field, _FIELDS, field="memory_field")
        check_memory(self.memory_scale, self.memory_unknown)
        local = time_of_day.zone(self.timezone)
        export = sacct_rows.read_export(path)
        used, requested = _FIELDS[self.memory_field]
        for name, required in (("MaxRSS", used and not requested), ("ReqMem", requested and not used)):
            if required and name not in export.names:
                remedy = "export it, or choose another memory_field"
                raise InputError(f"the export lacks {name}", file=path, field="memory_field", remedy=remedy)

        def read(rows: SacctRows) -> Workload:
            return self._read(replace(rows, whole=rows.line), local, machine)

        return read_readable(export, read, strict=self.strict)

    def _read(self, rows: SacctRows, local: tzinfo, machine: Machine) -> Workload:
        sacct_rows.check_width(rows)
        jobs, steps, duplicates = split_jobs_and_steps(rows, local)
        steps = add_missing_columns(steps, local, jobs=False)
        path = rows.path
        states = _states(jobs)
        jobs = add_missing_columns(jobs, local, jobs=True)
        keep, excluded = _select(jobs, states)
        jobs = jobs.filter_rows(keep)
        memory, repaired = self._memory(jobs, steps)
        if self.memory_unknown == "exclude":
            keep, more = select({"memory unknown or 0": memory <= 0}, path, 'read it with memory_unknown="zero"')
            jobs, memory, excluded = jobs.filter_rows(keep), memory[keep], {**excluded, **more}
        known = memory > 0
        texts, described = _texts(jobs, machine)
        licenses, lacking = _licenses(jobs, machine)
        demand = replace(_demand(jobs, memory), partition=texts.get("partition"))
        if any(part.exclusive for part in machine.partitions):
            demand, reduced = demand.within_exclusive_nodes(machine, _requested_cpus(jobs))
            repaired |= reduced
        request = demand.to_request(machine, separate_nodes=True)
        amounts = {**request.amounts, "memory": with_unknown(request.amounts["memory"], known, self.memory_unknown, repaired)}
        epoch, submit, waited, times = _submit(jobs, local)
        runtime, requested, recorded, limits = _times(jobs, machine, keep=self.keep_requests)
        return Workload.of(
            submit,
            runtime,
            id=jobs.wholes("JobIDRaw"),
            requested=requested,
            tasks=request.tasks,
            requests=amounts,
            attributes={
                **texts,
                **licenses,
                **waited,
                **recorded_limits(machine, recorded, requested),
                "memory_known": known.astype(np.int64),
            },
            excluded={**duplicates, **excluded},
            repaired={**limits, **repaired, **times, **described, **lacking, **request.repaired},
            name=stem(path),
            epoch=epoch,
        )

    def _memory(self, jobs: SacctRows, steps: SacctRows) -> tuple[FloatArray, dict[str, int]]:
        """Return the memory (MiB) on each node that a job had, (n_job,), 0 where unknown, and counts of repaired values."""
        memory = np.zeros(len(jobs), dtype=np.float64)
        repaired: dict[str, int] = {}
        used, requested = _FIELDS[self.memory_field]
        if used:
            memory, repaired = _used(jobs, steps)
        if requested:
            memory = np.where(memory > 0, memory, _requested(jobs))
        memory = memory * self.memory_scale
        name = "ReqMem" if requested else "MaxRSS"
        jobs.refuse(memory > LARGEST, name, "the job has more than 2**31 MiB on a node", _CORRECT)
        return memory, repaired


def _states(jobs: SacctRows) -> NDArray[np.str_]:
    """Return the states, (n_job,); "CANCELLED by 17" becomes "CANCELLED"."""
    state = np.array([word.partition(" ")[0] for word in jobs.words("State")], dtype=np.str_)
    states = [*_WAITING, *_RUNNING, *_ENDED]
    jobs.refuse(~np.isin(state, states), "State", "unknown state '{value}'", f"known: {', '.join(sorted(states))}")
    return state


def _select(jobs: SacctRows, state: NDArray[np.str_]) -> tuple[BoolArray, dict[str, int]]:
    """Return an (n_job,) mask of the jobs that ran and ended, and counts of the excluded jobs."""
    elapsed = np.zeros(len(jobs), dtype=np.int64)
    ended = np.isin(state, _ENDED)
    elapsed[ended] = jobs.filter_rows(ended).wholes("ElapsedRaw")
    allocated = np.array([word not in ("", "0") for word in jobs.words("AllocCPUS")], dtype=np.bool_)
    reasons = {
        "waiting when exported": np.isin(state, _WAITING),
        "running when exported": np.isin(state, _RUNNING),
        "submit time unknown": np.array([word in sacct_rows.UNKNOWN for word in jobs.words("Submit")], dtype=np.bool_),
        "cancelled before it ran": (state == "CANCELLED") & (elapsed <= 0),
        "runtime unknown or 0": elapsed <= 0,
        "no CPUs allocated": ~allocated,
    }
    return select(reasons, jobs.path, "export a period in which jobs ended (--starttime, --endtime)")


def _used(jobs: SacctRows, steps: SacctRows) -> tuple[FloatArray, dict[str, int]]:
    """Return the MiB used on a node, (n_job,), the maximum over a job's row and its steps, and counts of repaired values."""
    most: dict[str, float] = {}
    repaired: dict[str, int] = {}
    job_ids = {*jobs.words("JobIDRaw")}
    own = np.array([name.partition(".")[0] in job_ids for name in steps.words("JobIDRaw")], dtype=np.bool_)
    for rows in (jobs, steps.filter_rows(own)):
        peak = rows.read("MaxRSS", sacct_rows.used_mib, "write an amount such as 2048K")
        rows = rows.filter_rows(peak > 0)
        tasks, assumed = _tasks(rows)
        if assumed:
            reason = "tasks of a step unknown, assumed to be one per node"
            repaired[reason] = repaired.get(reason, 0) + assumed
        for name, amount in zip(rows.words("JobIDRaw"), (peak[peak > 0] * tasks).tolist(), strict=True):
            job = name.partition(".")[0]
            most[job] = max(most.get(job, 0.0), amount)
    return np.array([most.get(job, 0.0) for job in jobs.words("JobIDRaw")], dtype=np.float64), repaired


def _tasks(rows: SacctRows) -> tuple[IntArray, int]:
    """Return the number of tasks on the fullest node, (n_row,), and the number of rows without a number of tasks."""
    unknown = np.array([word in ("", "0") for word in rows.words("NTasks")], dtype=np.bool_)
    tasks = np.ones(len(rows), dtype=np.int64)
    counted = rows.filter_rows(~unknown)
    nodes = counted.read("NNodes", sacct_rows.counts, "write a whole number")
    count = counted.read("NTasks", sacct_rows.counts, "write a whole number")
    for name, column in (("NNodes", nodes), ("NTasks", count)):
        counted.refuse((column < 1) | (column > _LARGEST["AllocCPUS"]), name, "{value} is not between 1 and 2**31", _CORRECT)
    tasks[~unknown] = -(-count // nodes)
    return tasks, int(unknown.sum())


def _requested(jobs: SacctRows) -> FloatArray:
    """Return the requested memory (MiB) on each node that a job had, (n_job,), 0 where unknown."""
    amount, per = jobs.read(
        "ReqMem", sacct_rows.requested_mib, "export it without --noconvert, in sacct's format: 4G, 2Gn, 2Gc"
    )
    nodes, cpus = _nodes(jobs), _cpus(jobs)
    return np.where(per == "n", amount, np.where(per == "c", amount * cpus, amount) / nodes)


def _nodes(jobs: SacctRows) -> IntArray:
    nodes = jobs.read("NNodes", sacct_rows.counts, "write a whole number")
    jobs.refuse((nodes < 1) | (nodes > _LARGEST["NNodes"]), "NNodes", "{value} is not between 1 and 2**24", _CORRECT)
    return nodes


def _cpus(jobs: SacctRows) -> IntArray:
    cpus = jobs.read("AllocCPUS", sacct_rows.counts, "write a whole number")
    jobs.refuse((cpus < 1) | (cpus > _LARGEST["AllocCPUS"]), "AllocCPUS", "{value} is not between 1 and 2**31", _CORRECT)
    return cpus


def _requested_cpus(jobs: SacctRows) -> IntArray:
    """Return the requested CPUs of all nodes, (n_job,), 0 where unknown."""
    if "ReqCPUS" not in jobs.names:
        return np.zeros(len(jobs), dtype=np.int64)
    cpus = jobs.read("ReqCPUS", lambda words: sacct_rows.counts([word or "0" for word in words]), "write a whole number")
    jobs.refuse(cpus > _LARGEST["AllocCPUS"], "ReqCPUS", "{value} exceeds 2**31", _CORRECT)
    return cpus


def _demand(jobs: SacctRows, memory: FloatArray) -> Demand:
    gpus = np.zeros(len(jobs), dtype=np.int64)
    if "AllocTRES" in jobs.names:
        gpus = sacct_rows.gpus(jobs.words("AllocTRES"))
    return Demand(_nodes(jobs), _cpus(jobs) * 1000, memory, gpus * 1000)


def _times(jobs: SacctRows, machine: Machine, *, keep: bool = False) -> tuple[IntArray, IntArray, IntArray, dict[str, int]]:
    """Return runtimes, requested times and recorded limits, (n_job,) ns each, and counts of repaired requested times.

    A recorded limit that is missing is `units.UNKNOWN`. With `keep`, requested times are the recorded limits, or the limits of
    partitions.
    """
    runtime = jobs.wholes("ElapsedRaw")
    jobs.refuse(runtime > _LONGEST, "ElapsedRaw", "{value} s exceeds 68 years", _CORRECT)
    words = jobs.words("TimelimitRaw")
    repaired: dict[str, int] = {}
    limit, longest = runtime * SECOND, _partition_limits(jobs, words, machine)
    bounded = longest < UNKNOWN
    missing = [word for word, known in zip(words, bounded.tolist(), strict=True) if not known]
    for none in sorted({*missing} & {"", "UNLIMITED", "Partition_Limit", "INVALID"}):
        repaired[f"time limit {none or 'unknown'}, set to the runtime"] = missing.count(none)
    if bounded.any():
        repaired["time limit Partition_Limit, set to the maximum time of the partition"] = int(bounded.sum())
    stated = np.array([word not in ("", "UNLIMITED", "Partition_Limit", "INVALID") for word in words], dtype=np.bool_)
    limited = jobs.filter_rows(stated)
    minutes = limited.wholes("TimelimitRaw")
    bad = (minutes < 0) | (minutes > _LONGEST // 60)
    limited.refuse(bad, "TimelimitRaw", "{value} is not a time limit in minutes", _CORRECT)
    limit[stated], limit[bounded] = minutes * MINUTE, longest[bounded]
    recorded = np.where(stated & (limit > 0), limit, UNKNOWN)
    if keep:
        return runtime * SECOND, np.minimum(recorded, longest), recorded, {}
    if below := int((limit < runtime * SECOND).sum()):
        repaired["time limit below the runtime, set to the runtime"] = below
    return runtime * SECOND, np.maximum(limit, runtime * SECOND), recorded, repaired


def _partition_limits(jobs: SacctRows, words: list[str], machine: Machine) -> IntArray:
    """Return the partitions' longest times (ns) for jobs with the limit Partition_Limit, else `UNKNOWN`, (n_job,)."""
    longest = {part.name: part.max_time for part in machine.partitions}
    names = jobs.words("Partition") if "Partition" in jobs.names else [""] * len(words)
    pairs = zip(names, words, strict=True)
    limits = [longest.get(name, UNKNOWN) if word == "Partition_Limit" else UNKNOWN for name, word in pairs]
    return np.array(limits, dtype=np.int64)


def _submit(jobs: SacctRows, local: tzinfo) -> tuple[int, IntArray, dict[str, FloatArray], dict[str, int]]:
    """Return the first submission (ns since 1970), submissions (ns since then), recorded waits, and counts of repairs."""
    remedy = "write times in sacct's format, and set their time zone (--timezone)"
    submit, twice = jobs.read("Submit", lambda words: time_of_day.seconds(words, local), remedy)
    far = np.abs(submit - np.sort(submit)[len(submit) // 2]) > _LONGEST // 2
    jobs.refuse(far, "Submit", "{value} is more than 34 years from the middle of the log", _CORRECT)
    since = submit - submit.min()
    began = np.array([word not in sacct_rows.UNKNOWN for word in jobs.words("Start")], dtype=np.bool_)
    start, more = jobs.filter_rows(began).read("Start", lambda words: time_of_day.seconds(words, local), remedy)
    waited = np.full(len(jobs), np.nan, dtype=np.float64)
    waited[began] = start - submit[began]
    early = waited < 0
    waited[early] = np.nan
    counts = {time_of_day.REPEATED: twice + more, "start before the submission, wait unknown": int(early.sum())}
    return int(submit.min()) * SECOND, since * SECOND, {"wait_s": waited}, occurring(counts)


def _texts(jobs: SacctRows, machine: Machine) -> tuple[dict[str, NDArray[np.str_]], dict[str, int]]:
    """Return the text columns of the export with the final state of each job, and counts of repaired values."""
    texts = {ours: np.array(jobs.words(name), dtype=np.str_) for name, ours in _TEXTS.items() if name in jobs.names}
    counts = {_PARTS: sum("+" in name for name in jobs.words("JobID"))} if "JobID" in jobs.names else {}
    if CONSTRAINT in texts and machine.node_sets:
        written = texts[CONSTRAINT]
        possible = {text: supported_constraint(text, machine) for text in np.unique(written).tolist()}
        texts[CONSTRAINT] = np.array([possible[text] for text in written.tolist()], dtype=np.str_)
        counts[_CONSTRAINTS] = int((texts[CONSTRAINT] != written).sum())
    texts["state"] = np.array([word.partition(" ")[0] for word in jobs.words("State")], dtype=np.str_)
    return texts, occurring(counts)


def _licenses(jobs: SacctRows, machine: Machine) -> tuple[dict[str, IntArray], dict[str, int]]:
    """Return the columns of requested licenses, and the number of jobs with licenses that the machine lacks."""
    if "AllocTRES" not in jobs.names:
        return {}, {}
    return supported_licenses(sacct_rows.licenses(jobs.words("AllocTRES")), machine)


def supported_licenses(requested: Mapping[str, IntArray], machine: Machine) -> tuple[dict[str, IntArray], dict[str, int]]:
    """Return the requested licenses, (n_job,), by name, and the number of jobs with licenses that the machine lacks.

    A machine without licenses does not limit any, so all columns are kept.
    """
    modeled = {LICENSE + name: counts for name, counts in requested.items() if not machine.licenses or name in machine.licenses}
    others = [counts > 0 for name, counts in requested.items() if LICENSE + name not in modeled]
    return modeled, occurring({_LICENSES: int(np.any(others, axis=0).sum())})


def supported_constraint(constraint: str, machine: Machine) -> str:
    """Return the features that a constraint joins by "&", without those that the machine lacks; "" for other constraints."""
    terms = constraint.split("&")
    return "" if set(constraint) & set("|*[](),") else "&".join(term for term in terms if term in machine.node_sets)
