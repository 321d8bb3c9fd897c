"""A full day of a Slurm site that uses everything at once: the kernel equals the reference engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.slurm_site import site, site_jobs
from poolwise.engines import simulate
from poolwise.files.factory import scheduler_of
from poolwise.files.machine import load_machine
from poolwise.files.scheduler import load_scheduler
from poolwise.model import AssociationLimits, Machine, QualityOfService, ReservedWindow
from poolwise.quantities import HOUR, NEVER
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.random_studies import difference

SHORT = '[[partition]]\nname = "short"\nnodes = ["thin"]\ntier = 5\n'
WEIGHTS = {"thin": 10, "wide": 20, "fat": 30, "gpu4": 10, "gpu8": 20}


def busy_site(folder: Path, g: np.random.Generator) -> Machine:
    """Return the site of the benchmarks with a third partition of a higher tier, node weights, limits and reservations."""
    site(folder, 40)
    text = (folder / "machine.toml").read_text()
    for name, weight in WEIGHTS.items():
        text = text.replace(f'name = "{name}"\n', f'name = "{name}"\nattributes = {{ weight = {weight} }}\n')
    (folder / "machine.toml").write_text(text + SHORT)
    machine = load_machine(folder / "machine.toml")
    nodes = machine.node_sets["thin"] if "thin" in machine.node_sets else g.random(machine.n_owner) < 0.2
    windows = tuple(
        ReservedWindow(f"w{k}", start * HOUR, (start + 2) * HOUR, nodes & (g.random(machine.n_owner) < 0.3), frozenset(["u1"]))
        for k, start in enumerate((5, 14))
    )
    limits = (("cores", 800), ("jobs", 25))
    return replace(
        machine,
        windows=windows,
        licenses={"matlab": 5},
        qos=(QualityOfService("normal", True, per_user=limits), QualityOfService("small", total=(("nodes", 6),))),
        associations=(AssociationLimits("a1", "", "", NEVER, (), (), (("cores", 900),)),),
    )


@pytest.mark.long
@pytest.mark.parametrize("placement", ["topology_none", pytest.param("first_fit", marks=pytest.mark.further)])
def test_day(tmp_path: Path, placement: str) -> None:
    """Mixed nodes and GPUs, three partitions, tiers, fair share, weights, limits, licenses, exclusive jobs, reservations."""
    g, jobs = np.random.default_rng(7), 900
    machine = busy_site(tmp_path, g)
    load = site_jobs(jobs, 1, machine, 1.1)
    cpu = load.attributes["partition"] == "cpu"
    extra = {
        "partition": np.where(cpu & (g.random(jobs) < 0.2), "short,cpu", load.attributes["partition"]),
        "qos": g.choice(["", "small"], jobs, p=[0.9, 0.1]),
        "license/matlab": np.where(g.random(jobs) < 0.1, g.integers(1, 3, jobs), 0),
        "exclusive": cpu & (g.random(jobs) < 0.03),
    }
    load = replace(load, attributes={**load.attributes, **extra})
    if placement == "first_fit":
        text = (tmp_path / "slurm.toml").read_text()
        (tmp_path / "slurm.toml").write_text(text.replace('{ name = "topology_none", gpu_weights = false }', '"first_fit"'))
    scheduler = scheduler_of(load_scheduler(tmp_path / "slurm.toml"))
    assert isinstance(scheduler, ListScheduler)
    how = WarmUp.before(scheduler, 90)
    plain, fast = (simulate(load, machine, how, engine=engine).schedule for engine in ("reference", "compiled"))
    assert difference(plain, fast) == ""
    without = replace(machine, windows=(), licenses={}, qos=(), associations=())
    assert difference(simulate(load, without, how).schedule, fast)  # the limits and reservations have an effect
