"""Limits of associations: the tree of accounts, the nearest limit of a user, and limits on each job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import poolwise
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.files.machine import load_machine
from poolwise.model import AssociationLimits, Machine, QualityOfService, Workload
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine

TOML = """
version = 1
[[node]]
name = "n"
allocation = "shared"
cores = 8
[[rack]]
nodes = { n = 4 }
"""


def limited(*associations: AssociationLimits) -> Machine:
    """Return four nodes of eight cores with limits of associations."""
    return replace(machine(np.array([[8, 100]] * 4), np.zeros(4, dtype=np.int64)), associations=associations)


def of(*owners: str, cores: int = 2, seconds: int = 10, nodes: int = 1) -> Workload:
    """Return jobs submitted at once, given by "account/user"."""
    account, user = (np.array([owner.split("/")[k] for owner in owners]) for k in (0, 1))
    times, ones = np.full(len(owners), seconds * SECOND), np.ones(len(owners), dtype=np.int64)
    requests = {"cores": cores * ones, "nodes": nodes * ones}
    return Workload.of(0 * times, times, requests=requests, attributes={"account": account, "user": user})


def starts(load: Workload, on: Machine) -> list[int]:
    """Return the starts (s), -1 for rejected jobs."""
    result = simulate(load, on, ListScheduler(placement=FirstNodes()))
    found = dict(zip(result.schedule.job.tolist(), (result.schedule.start // SECOND).tolist(), strict=True))
    return [found.get(job, -1) for job in range(len(load))]


def test_total_counts_the_jobs_of_accounts_below() -> None:
    on = limited(AssociationLimits("chem", total=(("cores", 4),)), AssociationLimits("lab", parent="chem"))
    assert starts(of("chem/ann", "lab/bob", "lab/bob", "bio/cyd", "chem/ann"), on) == [0, 0, 10, 0, 10]


def test_limit_per_user_applies_to_each_user_in_each_account() -> None:
    on = limited(AssociationLimits("chem", per_user=(("jobs", 1),)), AssociationLimits("lab", parent="chem"))
    assert starts(of("chem/ann", "chem/ann", "lab/ann", "lab/bob", "lab/bob"), on) == [0, 10, 0, 0, 10]


def test_nearest_limit_of_a_user_applies() -> None:
    on = limited(
        AssociationLimits("chem", per_user=(("jobs", 1), ("cores", 4))),
        AssociationLimits("chem", "ann", per_user=(("jobs", 3),)),
    )
    assert starts(of("chem/ann", "chem/ann", "chem/ann", "chem/bob", "chem/bob"), on) == [0, 0, 10, 0, 10]


def test_job_beyond_a_limit_per_job_is_rejected() -> None:
    on = limited(
        AssociationLimits("chem", per_job=(("nodes", 1),), max_time=5 * SECOND),
        AssociationLimits("chem", "ann", per_job=(("nodes", 2),)),
    )
    assert starts(of("chem/ann", "chem/bob", "bio/cyd", nodes=2, seconds=4), on) == [0, -1, 0]
    assert starts(of("chem/ann", "chem/bob", "bio/cyd", seconds=6), on) == [-1, -1, 0]


def test_limits_of_the_qos_replace_those_of_associations() -> None:
    on = limited(AssociationLimits("chem", total=(("jobs", 1),), per_user=(("jobs", 1),), max_time=5 * SECOND))
    assert starts(of("chem/ann", "chem/bob", seconds=4), on) == [0, 4]
    more = QualityOfService("normal", True, 9 * SECOND, (("jobs", 2),), (("jobs", 3),))
    assert starts(of("chem/ann", "chem/ann", "chem/ann", "chem/bob", "chem/bob", seconds=8), replace(on, qos=(more,))) == [
        0, 0, 8, 0, 8,
    ]  # fmt: skip
    other = QualityOfService("normal", True, per_user=(("cores", 2),))
    assert starts(of("chem/ann", "chem/bob", seconds=4), replace(on, qos=(other,))) == [0, 4]


def test_wait_names_the_limit() -> None:
    on = limited(AssociationLimits("chem", total=(("jobs", 1),)))
    wait = poolwise.explain_wait(of("chem/ann", "chem/bob"), on, ListScheduler(placement=FirstNodes()), job=2)
    assert wait.episodes[0].reason.text == "account 'chem' allows at most 1 job in total"


def test_jobs_without_accounts_are_an_error() -> None:
    load = replace(of("chem/ann"), attributes={"user": np.array(["ann"])})
    with pytest.raises(InputError, match="the machine limits associations, but the jobs have no accounts"):
        starts(load, limited(AssociationLimits("chem", total=(("jobs", 1),))))


@pytest.mark.parametrize(
    ("entries", "place", "problem"),
    [
        ('account = "a"\nparent = "b"', "association.0.parent", "unknown account 'b'"),
        ('account = "a"\nuser = "u"\nparent = "a"', "association.0.parent", "a user in an account has no parent"),
        (
            'account = "a"\nparent = "b"\n[[association]]\naccount = "b"\nparent = "c"',
            "association.1.parent",
            "unknown account 'c'",
        ),
        ('account = "a"\nparent = "a"', "association.0.parent", "account 'a' is its own ancestor"),
        ('account = "a"\n[[association]]\naccount = "a"', "association.1.account", "duplicate association of account 'a'"),
        ('account = "a"\ntotal = { coers = 3 }', "association.0.total.coers", "unknown amount 'coers'"),
        ('account = "a"\nper_job = { jobs = 3 }', "association.0.per_job.jobs", "unknown amount 'jobs'"),
    ],
)
def test_errors_in_associations_name_the_field(entries: str, place: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.write_text(f"{TOML}[[association]]\n{entries}\n")
    with pytest.raises(InputError) as caught:
        load_machine(path)
    assert problem in caught.value.message and caught.value.line is not None
    assert caught.value.field == place
