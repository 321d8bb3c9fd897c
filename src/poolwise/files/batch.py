"""Batch files: TOML that specifies workloads, CPU modules and the placement objective."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from poolwise.arrays import FloatArray
from poolwise.batch.problem.definition import Batch, Modules, Problem
from poolwise.errors import InputError, UnknownNameError
from poolwise.files.document import Document
from poolwise.files.fields import Count, FileName, Memory, Name, Positive, Section
from poolwise.files.validation import validate
from poolwise.performance.profiles import Profile, find_profile, read_profiles
from poolwise.random import uniform

Fraction = Annotated[float, Field(ge=0, le=1)]
Above = Annotated[float, Field(gt=0)]
AtLeast = Annotated[float, Field(ge=0)]
Bounds = tuple[float, float]


class ModuleType(Section):
    """A type of CPU module, with `count` modules."""

    name: Name
    count: Positive = 1
    cores: Positive
    frequency: Above
    memory: Memory = Field(description="local memory, accessible only to the module's cores")
    static: AtLeast = Field(description="static energy of a module that is on")
    dynamic: AtLeast = Field(description="additional energy at full load")


class WorkloadEntry(Section):
    """One workload, or `count` identical ones."""

    name: Name
    count: Positive = 1
    cores: Positive
    frequency: Above
    memory: Memory
    tolerance: AtLeast = Field(description="maximum accepted slowdown theta; 0.1 means 10 %")
    priority: Annotated[int, Field(strict=True)] = 0
    profile: str = Field(description="name of a [[profile]] in this file, or of a catalog profile")


class ProfileEntry(Section):
    """Slowdown of a workload as a function of the remote share of its memory, linear between knots."""

    name: Name
    remote: list[float]
    slowdown: list[float]
    frequency_share: Fraction = 1.0


class Draw(Section):
    """Random workloads: values are uniform between the given bounds, and profiles have equal shares."""

    seed: Count = 0
    workloads: Positive
    cores: tuple[Positive, Positive]
    frequency: Bounds
    memory: tuple[Memory, Memory]
    tolerance: float | Bounds
    profiles: list[str] = Field(min_length=1)
    shuffle_modules: bool = Field(True, description="whether to shuffle modules; their order affects first fit and rounding")


class BatchFile(Section):
    """A batch of workloads and its machine."""

    version: Annotated[Literal[1], Field(description="version of the file format")]
    title: str = ""
    theta: Literal["printed", "relative"] = "relative"
    eta: Fraction = 0.5
    clip: bool = False
    normalise: bool = False
    least_local: Annotated[float, Field(gt=0, le=1)] = 0.25
    remote: Memory = Field(description="remote memory of the machine")
    module: list[ModuleType] = Field(min_length=1)
    workload: list[WorkloadEntry] = Field([])
    profile: list[ProfileEntry] = Field([])
    profiles: Annotated[str | None, FileName()] = Field(
        None, description="CSV file of profiles, relative to this file, from `poolwise profile fit`"
    )
    draw: Draw | None = None


def read_batch(
    file: Path, *, seed: int | None = None, eta: float | None = None, theta: str | None = None, tolerance: float | None = None
) -> Problem:
    """Read a batch file; arguments that are given override its values. Raises InputError with file, line and field."""
    document = Document.read(file)
    content = validate(BatchFile, document)
    if (content.draw is None) == (not content.workload):
        raise InputError("give either [[workload]] or [draw]", file=file, field="workload", remedy="keep one of the two")
    own = []
    for k, entry in enumerate(content.profile):
        with document.errors_at("profile", k):
            own.append(Profile(entry.name, tuple(entry.remote), tuple(entry.slowdown), entry.frequency_share, file.name))
    if content.profiles is not None:
        own += read_profiles(Path(content.profiles)).values()
    if content.draw is None:
        if seed is not None:
            raise InputError("a seed has no effect without [draw]", file=file, field="seed", remedy="remove it")
        batch, order = _listed(document, content, own), None
    else:
        batch = _drawn(document, content.draw, own, content.draw.seed if seed is None else seed, tolerance)
        order = (content.draw.seed if seed is None else seed) if content.draw.shuffle_modules else None
    if tolerance is not None:
        batch = replace(batch, tolerance=np.full(len(batch), tolerance))
    if theta not in (None, "printed", "relative"):
        raise UnknownNameError.of("theta", str(theta), ("printed", "relative"), field="theta")
    return Problem(
        batch,
        _modules(content.module, order),
        float(content.remote),
        content.eta if eta is None else eta,
        content.theta if theta is None else theta,  # type: ignore[arg-type]  # checked above
        content.clip,
        content.normalise,
        content.least_local,
    )


def _listed(document: Document, content: BatchFile, own: list[Profile]) -> Batch:
    names, rows, profiles = [], [], []
    for k, entry in enumerate(content.workload):
        with document.errors_at("workload", k, "profile"):
            profile = find_profile(entry.profile, own)
        if not profile.is_monotone:
            raise document.error(
                ("workload", k, "profile"),
                f"profile '{profile.name}' decreases with the remote share, so no memory share bounds its slowdown",
                "fit a monotone profile with `poolwise profile fit`",
            )
        for copy in range(entry.count):
            names.append(entry.name if entry.count == 1 else f"{entry.name}{copy}")
            rows.append((entry.cores, entry.frequency, entry.memory, entry.tolerance, entry.priority))
            profiles.append(profile)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"duplicate workload name '{twice}'", file=document.file, field="workload", remedy="rename one")
    cores, frequency, memory, tolerance, priority = (np.array(column) for column in zip(*rows, strict=True))
    return Batch(
        tuple(names),
        cores.astype(np.int64),
        frequency.astype(np.float64),
        memory.astype(np.float64),
        tolerance.astype(np.float64),
        priority.astype(np.int64),
        tuple(profiles),
    )


def _drawn(document: Document, draw: Draw, own: list[Profile], seed: int, tolerance: float | None) -> Batch:
    n, which = draw.workloads, np.arange(draw.workloads)
    with document.errors_at("draw", "profiles"):
        profiles = [find_profile(name, own) for name in draw.profiles]
    for field, (low, high) in (("cores", draw.cores), ("frequency", draw.frequency), ("memory", draw.memory)):
        if not 0 < low <= high:
            raise document.error(("draw", field), "the range is empty or its lower bound is not positive", "write [min, max]")
    low, high = draw.tolerance if isinstance(draw.tolerance, tuple) else (draw.tolerance, draw.tolerance)
    kinds = _shuffled(which % len(profiles), seed)
    least, most = draw.cores
    return Batch(
        tuple(f"{profiles[k].name}{w}" for w, k in enumerate(kinds.tolist())),
        (least + np.floor(uniform(seed, "batch/cores", which) * (most - least + 1))).astype(np.int64),
        _between(draw.frequency, uniform(seed, "batch/frequency", which)),
        np.round(_between(draw.memory, uniform(seed, "batch/memory", which))),
        _between((low, high), uniform(seed, "batch/tolerance", which)),
        np.zeros(n, dtype=np.int64),
        tuple(profiles[k] for k in kinds.tolist()),
    )


def _between(ends: tuple[float, float], share: FloatArray) -> FloatArray:
    return ends[0] + (ends[1] - ends[0]) * share


def _shuffled(values: np.ndarray, seed: int) -> np.ndarray:
    shuffled: np.ndarray = values[np.argsort(uniform(seed, "batch/profile", np.arange(len(values))), kind="stable")]
    return shuffled


def _modules(types: list[ModuleType], seed: int | None) -> Modules:
    """Return the modules sorted by type, or shuffled if a seed is given."""
    kind = np.repeat(np.arange(len(types)), [t.count for t in types])
    name = np.array([f"{t.name}{'-' if t.count > 1 else ''}{k if t.count > 1 else ''}" for t in types for k in range(t.count)])
    if seed is not None:
        order = np.argsort(uniform(seed, "batch/modules", np.arange(len(kind))), kind="stable")
        kind, name = kind[order], name[order]
    return Modules(
        tuple(name.tolist()),
        np.array([t.cores for t in types], dtype=np.int64)[kind],
        np.array([t.frequency for t in types], dtype=np.float64)[kind],
        np.array([t.memory for t in types], dtype=np.float64)[kind],
        np.array([t.static for t in types], dtype=np.float64)[kind],
        np.array([t.dynamic for t in types], dtype=np.float64)[kind],
        np.array([t.cores for t in types], dtype=np.int64)[kind],
        np.zeros(len(kind), dtype=np.bool_),
    )
