"""Random machines of shared nodes in several partitions, jobs for them, and windows, limits and exclusive jobs on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.model import Machine, Partition, Workload
from poolwise.quantities import NEVER, SECOND
from tests.helpers.limits_of_use import with_limits
from tests.helpers.node_machines import random_jobs, random_machine
from tests.helpers.shared_studies import random_windows


def divided_machine(g: np.random.Generator, nodes: int) -> Machine:
    """Draw nodes with or without devices in two to five partitions, disjoint or overlapping, and a feature."""
    on = random_machine(g, nodes, pools=False)
    of = g.integers(0, int(g.integers(2, 6)), on.n_owner)
    overlap = float(g.choice([0.0, 0.2, 0.6]))
    sets = {f"p{k}": (of == k) | (g.random(on.n_owner) < overlap) for k in range(int(of.max()) + 1)}
    sets["all"] = np.ones(on.n_owner, dtype=np.bool_)
    tiers = g.integers(1, 3, len(sets)) if g.random() < 0.2 else np.ones(len(sets), dtype=np.int64)
    limit = int(g.choice([NEVER, NEVER, 30 * SECOND]))
    parts = tuple(Partition(name, name == "all", limit, tier=int(tier)) for name, tier in zip(sets, tiers, strict=True))
    fast = {"fast": g.random(on.n_owner) < 0.7}
    return replace(on, node_sets={**sets, **fast}, partitions=parts)


def divided_jobs(g: np.random.Generator, on: Machine, jobs: int) -> Workload:
    """Draw jobs of one or several partitions."""
    load, names = random_jobs(g, on, jobs), [part.name for part in on.partitions]
    weight = np.array([0.1 if name == "all" else 1.0 for name in names])
    chosen = [g.choice(names, 2 if g.random() < 0.2 else 1, replace=False, p=weight / weight.sum()) for _ in range(jobs)]
    named = [",".join(some) if g.random() < 0.95 else "" for some in chosen]
    constraint = g.choice(["", "", "", "fast"], jobs)
    return replace(load, attributes={**load.attributes, "partition": np.array(named), "constraint": constraint})


def divided_with_windows(g: np.random.Generator, jobs: int, nodes: int) -> tuple[Workload, Machine]:
    """Draw partitions and jobs with windows, for users and with or without limits of use and exclusive jobs."""
    on = divided_machine(g, nodes)
    load = divided_jobs(g, on, jobs)
    load = replace(load, attributes={**load.attributes, "user": g.choice(["ada", "bob", "cay"], jobs)})
    if g.random() < 0.3:
        on, load = with_limits(g, on, load)
    if g.random() < 0.2:
        alone = (g.random(jobs) < 0.3).astype(np.int64)
        load = replace(load, attributes={**load.attributes, "exclusive": alone})
    return load, replace(on, windows=tuple(random_windows(g, load, on)))
