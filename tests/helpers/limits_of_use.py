"""Random limits of concurrent use: licenses, and limits of QOS and associations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.model import AssociationLimits, Machine, QualityOfService, Workload
from poolwise.quantities import NEVER, SECOND

LIMITED = {"jobs": 4, "nodes": 8, "cores": 14, "memory": 200, "gpu": 3}
"""Limited amounts, and the largest limit of each, which several running jobs reach."""


def random_limits(g: np.random.Generator) -> tuple[tuple[str, int], ...]:
    """Draw up to two limits."""
    names = g.choice([*LIMITED], int(g.integers(0, 3)), replace=False).tolist()
    return tuple((name, int(g.integers(1, LIMITED[name] + 1))) for name in names)


def per_job(g: np.random.Generator) -> tuple[tuple[str, int], ...]:
    """Draw up to one limit on each job."""
    return (("nodes", int(g.integers(2, 5))),) if g.random() < 0.3 else ()


def with_limits(g: np.random.Generator, on: Machine, load: Workload) -> tuple[Machine, Workload]:
    """Draw licenses, QOS, associations, users and accounts."""
    jobs, licenses = len(load), {name: int(g.integers(0, 5)) for name in ("a", "b") if g.random() < 0.6}
    default, longest = bool(g.random() < 0.5), [NEVER, 40 * SECOND]
    qos = tuple(
        QualityOfService(
            name, name == "normal" and default, longest[int(g.integers(2))], per_user=random_limits(g), total=random_limits(g)
        )
        for name in ("normal", "high")
        if g.random() < 0.8
    )
    accounts = {"lab": "chem", "chem": "", "bio": ""} if g.random() < 0.5 else {}
    associations = [
        AssociationLimits(account, "", parent, longest[int(g.integers(2))], per_job(g), random_limits(g), random_limits(g))
        for account, parent in accounts.items()
    ]
    associations += [
        AssociationLimits(account, "ada", "", NEVER, per_job(g), random_limits(g), random_limits(g))
        for account in accounts
        if g.random() < 0.5
    ]
    attributes = {
        "account": g.choice(["chem", "lab", "bio", "art"], jobs),
        "user": g.choice(["ada", "eve", "joe"], jobs),
        "qos": g.choice(["", *(each.name for each in qos)], jobs),
        **{f"license/{name}": np.where(g.random(jobs) < 0.5, 0, g.integers(0, 4, jobs)) for name in licenses},
    }
    limited = replace(on, licenses=licenses, qos=qos, associations=tuple(associations))
    return limited, replace(load, attributes={**load.attributes, **attributes})
