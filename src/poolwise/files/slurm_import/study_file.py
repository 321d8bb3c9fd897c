"""study.toml of an imported Slurm cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from poolwise import catalog
from poolwise.errors import InputError
from poolwise.files.slurm_import.cluster import MACHINE, SCHEDULER, SlurmCluster, toml
from poolwise.files.slurm_import.node_choice import placement_of
from poolwise.model import Workload
from poolwise.model.licenses import LICENSE
from poolwise.traces.text_files import read_text

_LICENSES = re.compile(rf"{LICENSE}([^=,|]+)=")


def study_text(cluster: SlurmCluster, log: str, workload: Workload, options: Mapping[str, Any], folder: Path) -> str:
    """Return study.toml for a log (a file or "catalog:NAME"), given its jobs as read for the machine."""
    trace = log if log.startswith(catalog.PREFIX) else Path(os.path.relpath(log, folder)).as_posix()
    partitions = workload.attributes.get("partition", np.array([], dtype=np.str_))
    unknown = sorted({*partitions.tolist()} - {*cluster.members, ""})
    lines = [
        f"# Study of cluster {cluster.name}: today's scheduler, and other orders on the same jobs and nodes.",
        "version = 1",
        f"title = {toml(f'What would another queue order change on {cluster.name}?')}",
        f'machine = "{MACHINE}"',
        "",
        "[workload]",
        f"trace = {toml(trace)}",
        'format = "sacct"',
    ]
    if options:
        entries = ", ".join(f"{name} = {toml(value)}" for name, value in options.items())
        lines.append(f"options = {{ {entries} }}  # Slurm starts jobs according to the memory that they request")
    if cluster.files.reservations is not None:
        lines.append('clock = "trace"  # the windows of the machine begin at times from the first job of the log')
    if unknown:
        lines.append(_known_partitions(cluster, log, partitions, unknown))
    _note_unknown_licenses(cluster, catalog.resolve("traces", log))
    if "OverTimeLimit" in cluster.conf:
        grace, place = cluster.conf.text("OverTimeLimit"), cluster.conf.source("OverTimeLimit")
        lines.append(
            f"# Jobs may exceed their limit by {grace} min (OverTimeLimit, {place}): a run time above the limit is kept."
        )
    jobs = len(workload) - int(np.isin(partitions, unknown).sum())
    lines += [
        "",
        "[scheduler]",
        'backfill = "easy"',
        f"placement = {placement_of(cluster)[0]}",
        "",
        "[performance]",
        'model = "ideal"  # the machine has no memory pools that slow jobs down',
        "",
        "[measure]",
        f"warm_up = {min(jobs // 10, 500)}  # a tenth of the {jobs:,} jobs, at most 500",
        "",
        "[vary]",
        '"scheduler.order" = ["fcfs", "sjf", "wfp3"]',
        "",
        "[today]",
        f"name = {toml(f'{cluster.name} today')}",
        f'machine = "{MACHINE}"',
        f'scheduler = "{SCHEDULER}"',
    ]
    return "\n".join(lines) + "\n"


def _known_partitions(cluster: SlurmCluster, log: str, partitions: np.ndarray, unknown: list[str]) -> str:
    """Return the line that keeps the jobs of known partitions; note the others. Raises InputError if no job is left."""
    named = [name for name in ("", *cluster.members) if name in partitions]
    if not named:
        remedy = f"export jobs of {', '.join(cluster.members)}, or give the slurm.conf of the cluster of the log"
        reasons = [f"{name} ({cluster.unusable.get(name, 'not defined')})" for name in unknown]
        problem = f"its jobs use partitions that are not imported from slurm.conf: {', '.join(reasons)}"
        raise InputError(problem, file=log, field="Partition", remedy=remedy)
    count = f"{int(np.isin(partitions, unknown).sum()):,} of {len(partitions):,} jobs"
    problem = f"left out, because their partitions are not imported ({', '.join(unknown)})"
    cluster.leave_out(f"{Path(log).name}: {count}: {problem}")
    return f"only = {{ partition = {toml(named)} }}  # not imported: {', '.join(unknown)}"


def _note_unknown_licenses(cluster: SlurmCluster, log: Path) -> None:
    """Record the licenses that jobs of a log request but slurm.conf does not define."""
    requested = [{*_LICENSES.findall(line)} - {*cluster.licenses} for line in read_text(log).split("\n")]
    if lacking := sorted(set[str]().union(*requested)):
        count = f"{sum(map(bool, requested)):,} rows request them"
        cluster.leave_out(f"{log.name}: licenses that slurm.conf lacks are not limited: {', '.join(lacking)}; {count}")
