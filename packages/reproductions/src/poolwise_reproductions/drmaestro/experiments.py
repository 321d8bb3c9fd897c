"""Parts of the paper that its simulated settings omit: the prototype's draw of jobs, histograms, sockets, a third phase.

Source: Amaral et al., DRMaestro, "Testing environment", "Experiment 2", "Trace-driven simulation implementation", Figure 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from poolwise import catalog
from poolwise.arrays import FloatArray, IntArray
from poolwise.files.document import Document
from poolwise.files.machine import MachineDescription, read_machine
from poolwise.model import Machine, Workload
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.quantities import SECOND
from poolwise.random import uniform
from poolwise.studies.cells import FunctionSource
from poolwise.traces.generators import generate
from poolwise.traces.generators.device_jobs import WARM_UP
from poolwise.traces.generators.variates import normal


@dataclass(frozen=True)
class TimeHistogram:
    """Histogram of completion times, scaled to the mean and spread in the profile of each kind of job.

    Attributes
    ----------
    edges : (n + 1,) edges of the bins, in any unit
    shares : (n,) shares of the runs in the bins; times are uniform within a bin
    """

    edges: tuple[float, ...]
    shares: tuple[float, ...]

    def scores(self, u: FloatArray) -> FloatArray:
        """Return times for uniform variates, (n,) each, in standard deviations from the mean."""
        edges, shares = np.array(self.edges), np.array(self.shares)
        low, high = edges[:-1], edges[1:]
        mean = float(shares @ (low + high)) / 2
        variance = float(shares @ (low**2 + low * high + high**2)) / 3 - mean**2
        times = np.interp(u, np.concatenate([[0.0], np.cumsum(shares)]), edges)
        return np.asarray((times - mean) / np.sqrt(variance))


@dataclass(frozen=True)
class DrMaestroExperiment:
    """Difference of an experiment from the simulated settings.

    Attributes
    ----------
    normal_kinds : whether the kinds of jobs are drawn from a normal distribution over the list of kinds, with the middle as its
        mean and a quarter of the list as its standard deviation (both assumed), as for the prototype
    times : histogram of the completion times, instead of a lognormal distribution
    nodes : nodes for each machine, which share its cores, memory and GPUs evenly
    rack_gpus : GPUs per machine that are in a node of the rack without cores
    nvme : NVMe devices of each node; each job requests one, which a third phase places
    """

    normal_kinds: bool = False
    times: TimeHistogram | None = None
    nodes: int = 1
    rack_gpus: int = 0
    nvme: int = 0

    @property
    def cores(self) -> int:
        """Cores of a node."""
        return 160 // self.nodes

    def machine(self, machines: int) -> MachineDescription:
        """Return the machine of the experiment."""
        return _machine(self, machines)

    def source(self, settings: Mapping[str, Any], name: str) -> FunctionSource:
        """Return the jobs of the experiment, given the generator settings of the simulated setting."""
        changed = {**settings, "machines": settings["machines"] * self.nodes, "cores": self.cores}
        return FunctionSource(name, {"experiment": name, **changed}, partial(_draw, self, changed))


@lru_cache(maxsize=8)
def _machine(experiment: DrMaestroExperiment, machines: int) -> MachineDescription:
    per_machine, gpus = experiment.nodes, 4 - experiment.rack_gpus
    document = Document.read(catalog.find("machines", f"gpu-{machines}"))
    node = {"name": "server", "allocation": "shared", "cores": experiment.cores, "memory": f"{512 // per_machine} GiB"}
    device: list[dict[str, Any]] = [{"name": "gpu", "count": gpus // per_machine, "at": "server"}]
    link = [{"name": "link1", "from": "rack0.server?*", "to": "machine", "bandwidth": f"{100 // per_machine} Gb/s"}]
    if experiment.rack_gpus:
        device.append({"name": "rackgpu", "type": "gpu", "count": experiment.rack_gpus * machines, "at": "rack"})
        link.append({"name": "link2", "from": "rack0.rackgpu*", "to": "machine", "bandwidth": "100 Gb/s"})
    if experiment.nvme:
        device.append({"name": "nvme", "count": experiment.nvme, "at": "server"})
    rack = [{"nodes": {"server": machines * per_machine}}]
    return read_machine(document.with_tables(node=[node], rack=rack, device=device, link=link))


def _draw(experiment: DrMaestroExperiment, settings: Mapping[str, Any], machine: Machine) -> Workload:
    """Draw the jobs of the simulated setting, and apply the changes of the experiment."""
    jobs = generate("device_jobs", **settings)
    profiles, seed = read_device_profiles(settings["profiles"]), settings["seed"]
    ordered_profiles = list(profiles.values())
    warm = jobs.attributes["kind"] == WARM_UP
    number = {name: k for k, name in enumerate(profiles)}
    pick = np.array([number.get(str(kind), 0) for kind in jobs.attributes["kind"]])
    job = np.arange(len(pick))

    def of(name: str, at: IntArray) -> FloatArray:
        return np.array([getattr(profile, name) for profile in ordered_profiles], dtype=np.float64)[at]

    factor = jobs.duration / (of("local_s", pick) * SECOND)
    if experiment.times is not None:
        factor = 1 + of("spread", pick) * experiment.times.scores(uniform(seed, "experiment.time", job))
    if experiment.normal_kinds:
        pick = middle_kinds(normal(seed, "experiment.kind", job), len(ordered_profiles))
    columns = {"cores": ("cores", 1.0), "memory": ("memory_gib", 1024.0), "bandwidth": ("link_mb_s", 1.0)}
    requests = {name: jobs.request(name) for name in (*columns, "gpu")}
    for name, (attribute, scale) in columns.items():
        requests[name] = np.where(warm, requests[name], np.rint(of(attribute, pick) * scale)).astype(np.int64)
    if experiment.nvme:
        requests["nvme"] = np.where(warm, 0, 1)
    kinds = np.where(warm, WARM_UP, np.array(list(profiles))[pick])
    goal = np.where(warm, 0, np.rint(of("goal_s", pick) * SECOND)).astype(np.int64)
    return Workload.of(
        submit=jobs.submit,
        duration=np.where(warm, jobs.duration, np.rint(of("local_s", pick) * factor * SECOND)).astype(np.int64),
        requested=np.where(warm, jobs.requested, np.rint(of("local_s", pick) * SECOND)).astype(np.int64),
        requests=requests,
        attributes={"kind": kinds, "goal": goal, "pinned": jobs.attributes["pinned"]},
        name=jobs.name,
    )


def middle_kinds(score: FloatArray, kinds: int) -> IntArray:
    """Return positions in a list of kinds for normal scores, (n,) each: the middle of the list is the mean."""
    return np.clip(np.floor(kinds / 2 + kinds / 4 * score), 0, kinds - 1).astype(np.int64)


MOSTLY_ABOVE = "histogram with most times above the mean"
"""Histogram fitted to one published number: Firmament's 106 of 128 jobs that take longer than the mean (Table 3)."""
EXPERIMENTS: Mapping[str, DrMaestroExperiment] = {
    "kinds drawn from a normal distribution": DrMaestroExperiment(normal_kinds=True),
    "flat histogram of times": DrMaestroExperiment(times=TimeHistogram((0, 1), (1.0,))),
    "histogram of times with two peaks": DrMaestroExperiment(times=TimeHistogram((0, 1, 3, 4), (0.5, 0.0, 0.5))),
    MOSTLY_ABOVE: DrMaestroExperiment(times=TimeHistogram((0, 1, 3, 4), (22 / 128, 0.0, 106 / 128))),
    "sockets as nodes": DrMaestroExperiment(nodes=2),
    "one GPU of four in a rack node": DrMaestroExperiment(rack_gpus=1),
    "an NVMe device for each job, placed by a third phase": DrMaestroExperiment(nvme=4),
}
"""Experiments on the smallest setting, for which the paper prints no results."""
