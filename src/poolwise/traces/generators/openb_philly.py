"""Generator of jobs that request every resource of a pooled datacenter: Alibaba's openb pods with Microsoft Philly durations.

Sources: Weng et al. 2023 (requests of the pods; `traces.openb`); Jeon et al. 2019 (durations of GPU jobs; `traces.philly`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from poolwise import catalog
from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Kind, Machine, MachineBuilder, Workload
from poolwise.quantities import SECOND
from poolwise.random import uniform
from poolwise.registry import InputFile, register
from poolwise.traces.generators.arrivals import poisson
from poolwise.traces.generators.generator import Generator, check_setting_range
from poolwise.traces.generators.variates import whole_below
from poolwise.traces.openb import OpenB
from poolwise.traces.philly import Philly
from poolwise.traces.selection import occurring

MODELS = {"v100": ("V100M16", "V100M32"), "p100": ("P100",), "t4": ("T4",), "a10": ("A10",), "g2": ("G2",), "g3": ("G3",)}
"""Name of a GPU type in shipped machine files -> models in the trace's `gpu_spec`."""
GPU_KINDS = ("gpu_training", "gpu_inference")
CPU_KINDS = ("spark_wordcount", "hadoop_wordcount", "cfm_spark", "cfm_linpack")


@register("generators", "openb_philly")
@dataclass(frozen=True)
class OpenbPhilly(Generator):
    """Pods drawn with replacement; properties that neither trace has are drawn from assumed distributions.

    From openb: cores (rounded up), memory, GPUs (rounded up to whole ones), and the acceptable types of GPU. From Philly: the
    duration of a job with the same number of GPUs (one GPU for pods without), limited to `longest_s`. Requested times equal
    durations. Assumed: Poisson arrivals; the GPU type, drawn in proportion to the number of each from the types that the pod
    names and the machine has, or from all types of the machine if it has none of those; whether a pod needs NVMe, its capacity
    and its bandwidth; and the other inputs of performance models. Each draw depends only on the seed and the job.

    Columns: requests cores, memory, bandwidth, storage, and one for each GPU type; attributes kind and profile (sensitivity
    to remote GPUs and memory, drawn uniformly from `GPU_KINDS`, or from `CPU_KINDS` for pods without GPU), frequency, and
    data_size, data_x, data_y (data staged before the job runs, from the switch of a rack).

    Parameters
    ----------
    pods, durations
        Traces: "catalog:NAME" or a file.
    gpus
        Type of GPU -> number on the machine; names as in `MODELS`.
    mean_gap_s
        Mean time between arrivals.
    longest_s
        Longest duration.
    gpu_nvme, cpu_nvme
        Share of the pods with and without GPUs that need NVMe.
    nvme_mb_s
        Range of the bandwidth of such pods, log-uniform, multiplied by the number of GPUs.
    nvme_gib
        Range of the capacity, log-uniform.
    staged
        Share of the capacity that is staged.
    frequency
        GHz at which the durations apply.
    racks
        Number of racks that hold the data.
    most_gpus
        Largest number of GPUs of a pod; larger pods are not drawn.
    """

    jobs: int = 600
    seed: int = 0
    pods: InputFile = "catalog:openb-gpuspec33.csv.gz"
    durations: InputFile = "catalog:philly-2017-10.csv.gz"
    gpus: Mapping[str, int] = field(default_factory=lambda: {"v100": 16, "p100": 16, "t4": 32})
    mean_gap_s: float = 60.0
    longest_s: float = 21600.0
    gpu_nvme: float = 0.5
    cpu_nvme: float = 0.3
    nvme_mb_s: tuple[float, float] = (100.0, 800.0)
    nvme_gib: tuple[float, float] = (32.0, 512.0)
    staged: float = 0.1
    frequency: float = 2.8
    racks: int = 4
    most_gpus: int = 8

    @property
    def nodes(self) -> int:
        """Number of racks; the jobs share nodes."""
        return self.racks

    def generate(self) -> Workload:
        """Draw the jobs."""
        self._check()
        pods, philly = _pods(self.pods), _philly(self.durations)
        job = np.arange(self.jobs)
        eligible = np.flatnonzero(pods.request("gpu") <= self.most_gpus)
        row = eligible[self._pick("pod", job, len(eligible))]
        count = pods.request("gpu")[row]
        has_gpu = count > 0
        nvme = uniform(self.seed, "openb_philly.nvme", job) < np.where(has_gpu, self.gpu_nvme, self.cpu_nvme)
        bandwidth = self._log_uniform("bandwidth", job, self.nvme_mb_s) * np.maximum(count, 1)
        storage = np.ceil(self._log_uniform("storage", job, self.nvme_gib)) * 1024
        kind = self._kinds(job, has_gpu)
        duration = self._durations(philly, job, count)
        return Workload.of(
            np.rint(poisson(self.seed, "openb_philly.gap", job) * (self.mean_gap_s * SECOND)).astype(np.int64),
            np.minimum(duration, round(self.longest_s * SECOND)),
            requests={
                "cores": pods.request("cores")[row],
                "memory": pods.memory[row],
                "bandwidth": np.where(nvme, np.ceil(bandwidth), 0).astype(np.int64),
                "storage": np.where(nvme, storage, 0).astype(np.int64),
                **self._types(job, pods.attributes["gpu_spec"][row].tolist(), count),
            },
            attributes={
                "kind": kind,
                "profile": kind,
                "frequency": np.full(self.jobs, self.frequency),
                "data_size": np.where(nvme, np.ceil(self.staged * storage), 0).astype(np.int64) * 2**20,
                "data_x": self._pick("place", job, self.racks),
                "data_y": np.zeros(self.jobs, dtype=np.int64),
            },
            repaired=self._repaired(pods, row, int((duration > self.longest_s * SECOND).sum())),
            name="openb pods with Philly durations",
        )

    def _check(self) -> None:
        check_setting_range(1, jobs=self.jobs, racks=self.racks, most_gpus=self.most_gpus)
        check_setting_range(1e-9, mean_gap_s=self.mean_gap_s, longest_s=self.longest_s, frequency=self.frequency)
        check_setting_range(0, 1, gpu_nvme=self.gpu_nvme, cpu_nvme=self.cpu_nvme, staged=self.staged)
        for name, (low, high) in (("nvme_mb_s", self.nvme_mb_s), ("nvme_gib", self.nvme_gib)):
            check_setting_range(1, **{name: low})
            check_setting_range(low, **{name: high})
        unknown = sorted(set(self.gpus) - set(MODELS))
        if unknown or not sum(self.gpus.values()) or min(self.gpus.values()) < 0:
            problem = f"unknown GPU type '{unknown[0]}'" if unknown else "the counts must be at least 0 and not all 0"
            raise InputError(problem, field="gpus", remedy=f"types: {', '.join(MODELS)}")

    def _pick(self, stream: str, job: IntArray, n: int) -> IntArray:
        return whole_below(n, self.seed, f"openb_philly.{stream}", job)

    def _log_uniform(self, stream: str, job: IntArray, bounds: tuple[float, float]) -> FloatArray:
        low, high = bounds
        values: FloatArray = low * (high / low) ** uniform(self.seed, f"openb_philly.{stream}", job)
        return values

    def _kinds(self, job: IntArray, has_gpu: BoolArray) -> NDArray[np.str_]:
        gpu = np.array(GPU_KINDS)[self._pick("gpu_kind", job, len(GPU_KINDS))]
        return np.where(has_gpu, gpu, np.array(CPU_KINDS)[self._pick("cpu_kind", job, len(CPU_KINDS))])

    def _durations(self, philly: Mapping[int, IntArray], job: IntArray, count: IntArray) -> IntArray:
        """Return durations (ns) of Philly jobs with as many GPUs, or the next lower number, or the lowest, (n_job,)."""
        gpu_counts, u = sorted(philly), uniform(self.seed, "openb_philly.duration", job)
        values = np.zeros(len(job), dtype=np.int64)
        for many in np.unique(count).tolist():
            rows = count == many
            times = philly[max((k for k in gpu_counts if k <= many), default=gpu_counts[0])]
            values[rows] = times[np.minimum((u[rows] * len(times)).astype(np.int64), len(times) - 1)]
        return values

    def _types(self, job: IntArray, specs: list[str], count: IntArray) -> dict[str, IntArray]:
        """Return type -> (n_job,) requested GPUs; each job requests one type."""
        chosen, u = np.zeros((len(self.gpus), len(job)), dtype=np.int64), uniform(self.seed, "openb_philly.type", job)
        bounds: dict[str, FloatArray] = {}
        for k, spec in enumerate(specs):
            if spec not in bounds:
                bounds[spec] = np.cumsum(self._weights(spec))
            chosen[int(np.searchsorted(bounds[spec], u[k] * bounds[spec][-1], side="right")), k] = count[k]
        return dict(zip(self.gpus, chosen, strict=True))

    def _weights(self, spec: str) -> list[int]:
        """Return the number of GPUs of each type that a pod accepts: all types if the machine has none that it names."""
        models = set(spec.split("|"))
        named = [number if models & set(MODELS[name]) else 0 for name, number in self.gpus.items()]
        return named if any(named) else list(self.gpus.values())

    def _repaired(self, pods: Workload, row: IntArray, limited: int) -> dict[str, int]:
        shared = int(pods.attributes["shared_gpu"][row].sum())
        return occurring(
            {"fraction of a GPU, rounded up to a whole GPU": shared, f"duration limited to {self.longest_s:g} s": limited}
        )


@lru_cache(maxsize=2)
def _pods(reference: str) -> Workload:
    """Read pods with whole cores and GPUs; the attribute "shared_gpu" is 1 for pods that request part of a GPU."""
    path = catalog.resolve("traces", reference)
    whole, parts = (OpenB().read(Path(path), _shared_nodes(gpu)) for gpu in ("gpu", "gpu_milli"))
    if "gpu_spec" not in whole.attributes:
        raise InputError("the trace does not name GPU types", file=path, field="gpu_spec", remedy="use another pod list")
    shared: BoolArray = np.less(parts.request("gpu_milli"), 1000 * whole.request("gpu"))
    return replace(whole, attributes={**whole.attributes, "shared_gpu": shared.astype(np.int64)})


@lru_cache(maxsize=2)
def _philly(reference: str) -> dict[int, IntArray]:
    """Return number of GPUs -> durations (ns) of the Philly jobs with that many GPUs."""
    jobs = Philly().read(Path(catalog.resolve("traces", reference)), _shared_nodes("gpu"))
    gpus = jobs.request("gpu") * jobs.tasks
    return {int(many): jobs.duration[gpus == many] for many in np.unique(gpus).tolist()}


def _shared_nodes(gpu: str) -> Machine:
    """Build a machine for reading a trace: one shared node that is larger than any request."""
    build = MachineBuilder("any", ("cores", "memory", gpu))
    build.add("node", Kind.NODE, "node", dict.fromkeys(("cores", "memory", gpu), 2**30))
    return Machine.of(build)
